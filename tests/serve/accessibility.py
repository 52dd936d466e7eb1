"""What a page is for those who hear it: the rules of axe-core, and what Chromium tells a screen
reader."""

import pathlib
import shutil
import subprocess

# Notes each text that a live region gains, as a screen reader would say it.
LISTEN = """
window.heard = [];
const live = '[aria-live]:not([aria-live=off]), [role=status], [role=log], [role=alert], output';
new MutationObserver((changes) => {
  for (const change of changes) {
    const element = change.target.nodeType === 1 ? change.target : change.target.parentElement;
    if (!element?.closest(live)) continue;
    for (const node of change.addedNodes) heard.push(node.textContent);
    if (change.type === 'characterData') heard.push(change.target.textContent);
  }
}).observe(document.body, {childList: true, subtree: true, characterData: true});
"""
VIOLATIONS = """
const done = arguments[0];
axe.run(document, {resultTypes: ['violations', 'incomplete']}).then((found) => done(
    found.violations.map((v) => v.id + ': ' + v.help + ': ' + v.nodes.map((n) => n.html).join(' '))
    .concat(found.passes.length + found.violations.length < 20 ? ['few rules ran'] : [])));
"""


def install_axe(folder):
  """Returns the source of axe-core, or None."""
  shutil.copytree(pathlib.Path(__file__).parent / "access", folder / "access")
  if not shutil.which("npm"):
    return None
  installed = subprocess.run(
      ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"],
      cwd=folder / "access", capture_output=True, text=True)
  if installed.returncode:
    print(f"without axe-core: npm cannot install it\n{installed.stderr}")
    return None
  return (folder / "access/node_modules/axe-core/axe.min.js").read_text()


def tree(browser):
  """What Chromium tells a screen reader: (role, name, properties)."""
  browser.devtools("Accessibility.enable")
  nodes = browser.devtools("Accessibility.getFullAXTree")["nodes"]
  return [(node["role"]["value"], node.get("name", {}).get("value", ""),
           {p["name"]: p["value"].get("value") for p in node.get("properties", [])})
          for node in nodes if not node["ignored"]]
