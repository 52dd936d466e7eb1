"use strict";
const $ = (id) => document.getElementById(id);
const make = (tag, className, text) => {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
};

const human = (bytes) => bytes >= 1e9 ? (bytes / 1e9).toFixed(2) + " GB"
    : bytes >= 1e6 ? (bytes / 1e6).toFixed(1) + " MB" : (bytes / 1e3).toFixed(1) + " kB";

function headers() {
  const key = $("api_key").value.trim();
  return key ? {Authorization: "Bearer " + key} : {};
}

// Sends a request whose answer is a stream, and yields its events. Throws the API's words.
async function* ask(path, body, type, signal) {
  const response = await fetch(path, {
    method: "POST", body, signal, headers: {...type && {"Content-Type": type}, ...headers()}});
  if (!response.ok) throw new Error((await response.json()).error.message);
  for await (const event of events(response)) {
    if (event.error) throw new Error(event.error.message);
    yield event;
  }
}

async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line === "data: [DONE]") return;
      if (line.startsWith("data: ")) yield JSON.parse(line.slice(6));
    }
  }
}

// Returns what the server says of itself. Throws the API's words.
async function askStatus() {
  const response = await fetch("v1/status", {headers: headers()});
  const status = await response.json();
  if (!response.ok) throw new Error(status.error.message);
  return status;
}

// Shows whose page this is.
function showModel(name) {
  $("model").textContent = name;
  document.title = name + " - Arenite";
}

// Has a screen reader say a text.
function say(text) {
  if (text.trim()) $("said").append(make("p", "", text));
}

// Shows and says what went wrong; "": nothing.
function showProblem(text) {
  $("problem").textContent = text;
  $("problem").classList.toggle("hidden", !text);
  say(text);
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);  // not there for pages over http
  } catch (error) {
    const field = make("textarea", "visually-hidden", text);
    const before = document.activeElement;
    document.body.append(field);
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    before?.focus();
    if (!isCopied) return showProblem("The browser does not let this page copy.");
  }
  say("Copied.");
}

// Keeps the values of fields in the browser, under a name.
function keep(name, values) {
  try { localStorage.setItem(name, JSON.stringify(values)); } catch (error) { /* private */ }
}

function kept(name) {
  try { return JSON.parse(localStorage.getItem(name) || "{}"); } catch (error) { return {}; }
}
