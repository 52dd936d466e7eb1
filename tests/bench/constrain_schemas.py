"""Schemas as programs ask for them, and values that fit them: SCHEMAS, values(schema, rng).

A value of a schema is one of its `examples`, else made of its keywords.
"""

WORDS = ("the quick brown fox jumps over lazy dogs München Zürich señor 東京 data-base user_name "
         "hello world test 12345 \"quoted\" back\\slash 😀 street avenue it's C++ a/b 50% #1 "
         "internationalization Donaudampfschifffahrt line\nbreak tab\tbed").split(" ")

TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 0}
EMAIL = {"type": "string", "format": "email",
         "examples": ["ann@example.com", "j.r.tolkien+books@mail.example.co.uk", "x_1@a-b.org"]}
TIME = {"type": "string", "format": "date-time",
        "examples": ["2024-02-29T23:59:59Z", "1999-12-31T00:00:00.125+05:30"]}
DATE = {"type": "string", "format": "date", "examples": ["2024-02-29", "1970-01-01", "2031-10-05"]}
UUID = {"type": "string", "format": "uuid",
        "examples": ["123e4567-e89b-12d3-a456-426614174000",
                     "00000000-0000-4000-8000-00000000ABCD"]}
URI = {"type": "string", "format": "uri",
       "examples": ["https://example.com/a/b?c=d&e=%20f#g", "urn:isbn:0451450523",
                    "http://[::1]:8080/", "mailto:ann@example.com"]}
HOST = {"type": "string", "format": "hostname", "examples": ["example.com", "a-1.b-2.internal"]}


def text(low=0, high=None):
  bounds = {"minLength": low} if low else {}
  return {"type": "string", **bounds, **({"maxLength": high} if high is not None else {})}


def pattern(expression, *examples):
  return {"type": "string", "pattern": expression, "examples": list(examples)}


def array(items, **more):
  return {"type": "array", "items": items, **more}


def record(optional=(), **properties):
  return {"type": "object", "properties": properties, "additionalProperties": False,
          "required": [name for name in properties if name not in optional]}


TREE = {"$ref": "#/$defs/node",
        "$defs": {"node": record(value=text(1, 40), children=array({"$ref": "#/$defs/node"},
                                                                     maxItems=3))}}

SCHEMAS = {
    # Extraction.
    "person": record(name=TEXT, age={"type": "integer", "minimum": 0, "maximum": 150}, email=TEXT),
    "contact": record(("phone",), name=text(1, 100), email=EMAIL,
                      phone=pattern(r"^\+[1-9][0-9]{6,14}$", "+4915112345678", "+12025550123")),
    "address": record(("line2",), line1=text(1, 120), line2=text(0, 120), city=text(1, 60),
                      postcode=pattern("^[0-9]{5}(-[0-9]{4})?$", "12345", "12345-6789"),
                      country=pattern("^[A-Z]{2}$", "DE", "JP")),
    "event": record(title=text(3, 80), start=TIME, end=TIME, place=text(0, 200)),
    "invoice": record(number=pattern("^INV-[0-9]{4}-[0-9]{6}$", "INV-2024-000123"), date=DATE,
                      lines=array(record(text=text(1, 80), quantity=COUNT,
                                         price={"type": "number", "minimum": 0}),
                                  minItems=1, maxItems=20),
                      currency={"enum": ["EUR", "USD", "JPY", "GBP"]}),
    "resume": record(name=text(1, 80), skills=array(text(1, 30), maxItems=20),
                     jobs=array(record(("to",), company=text(1, 60), **{"from": DATE}, to=DATE),
                                maxItems=5)),
    "receipt": record(shop=TEXT, total={"type": "number", "multipleOf": 0.01},
                      items=array(record(name=TEXT, cents=COUNT))),
    "triples": array(record(subject=text(1, 60), relation={"enum": ["is", "has", "part_of"]},
                            object=text(1, 60)), maxItems=10),
    "entities": array(record(text=TEXT, kind={"enum": ["person", "place", "company", "date"]},
                             start=COUNT, end=COUNT)),
    "medication": record(("note",), drug=text(2, 50), dose=pattern("^[0-9]+ ?(mg|g|ml)$", "5 mg"),
                         per_day={"type": "integer", "minimum": 1, "maximum": 12},
                         note={"type": ["string", "null"], "maxLength": 280}),
    # Judging.
    "sentiment": record(label={"enum": ["positive", "neutral", "negative"]},
                        score={"type": "number", "minimum": 0, "maximum": 1}),
    "review": record(stars={"type": "integer", "minimum": 1, "maximum": 5}, title=text(3, 60),
                     body=text(3, 500), recommends={"type": "boolean"}),
    "moderation": record(flagged={"type": "boolean"}, reason=text(0, 140),
                         categories=array({"enum": ["spam", "hate", "self_harm", "violence"]},
                                          uniqueItems=True)),
    "ranking": array(record(id=UUID, score={"type": "integer", "minimum": 0, "maximum": 100}),
                     minItems=1, maxItems=10),
    "rubric": record(reasoning=text(20, 2000), grade={"enum": list("ABCDF")}),
    "tweet": record(text=text(1, 280), tags=array(pattern("^#[A-Za-z0-9_]{1,30}$", "#news", "#a_1"),
                                                  maxItems=5)),
    # Programs and machines.
    "user": record(id=UUID, login=pattern("^[a-z][a-z0-9_]{2,31}$", "ann_1", "averyverylonglogin"),
                   created=TIME, roles=array({"enum": ["admin", "editor", "viewer"]}, minItems=1)),
    "server": record(host=HOST, port={"type": "integer", "minimum": 1, "maximum": 65535},
                     url=URI, tls={"type": "boolean"}),
    "network": record(ip={"type": "string", "format": "ipv4", "examples": ["10.0.0.1"]},
                      ip6={"type": "string", "format": "ipv6", "examples": ["2001:db8::1", "::"]},
                      mac=pattern("^([0-9a-f]{2}:){5}[0-9a-f]{2}$", "00:1a:2b:3c:4d:5e")),
    "package": record(("homepage",), name=pattern("^[a-z0-9][a-z0-9._-]*$", "left-pad", "a.b_c"),
                      version=pattern(r"^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$", "1.0.0", "2.10.3-rc.1"),
                      homepage=URI),
    "commit": record(sha=pattern("^[0-9a-f]{40}$", "0123456789abcdef" * 2 + "01234567"),
                     subject=text(1, 72), body=TEXT),
    "env": {"type": "object", "additionalProperties": text(0, 80), "maxProperties": 8,
            "examples": [{"PATH": "/usr/bin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}, {},
                         {f"VAR_{i}": "value " * i for i in range(8)}]},
    "labels": {"type": "object", "maxProperties": 5, "minProperties": 1,
               "patternProperties": {"^[a-z]+(-[a-z]+)*$": text(0, 63)},
               "additionalProperties": False,
               "examples": [{"app": "web", "tier-of-it": "front end"}, {"a": ""}]},
    "headers": {"type": "object", "propertyNames": {"pattern": "^[A-Za-z-]{1,40}$"},
                "additionalProperties": text(0, 200),
                "examples": [{"Content-Type": "text/html; charset=utf-8", "X-Id": "7"}]},
    "colours": array(pattern("^#[0-9a-fA-F]{6}$", "#00ff7F", "#123456"), minItems=2, maxItems=8),
    "chart": record(title=text(1, 60), kind={"enum": ["bar", "line", "pie"]},
                    series=array(record(name=text(1, 30), data=array({"type": "number"})))),
    "point": {"type": "array", "prefixItems": [{"type": "number", "minimum": -90, "maximum": 90},
                                                 {"type": "number", "minimum": -180,
                                                  "maximum": 180}],
              "items": False, "minItems": 2, "examples": [[48.13, 11.57], [-33.9, 151.2]]},
    "matrix": array(array({"type": "integer", "minimum": -9, "maximum": 99}, minItems=3,
                          maxItems=3), minItems=3, maxItems=3),
    "schedule": record(cron=pattern(r"^(\*|[0-9,/-]+)( (\*|[0-9,/-]+)){4}$", "*/5 0-6 1 * *"
                                    .replace("*/5", "0,30")), duration={
                                        "type": "string", "format": "duration",
                                        "examples": ["P3DT12H", "PT0.5S".replace("0.5", "5")]}),
    "file": record(path=pattern("^(/[^/]+)+$", "/usr/lib/x.so", "/home/ann/été.txt"), size=COUNT,
                   mode=pattern("^0[0-7]{3}$", "0644")),
    "sql": record(query=pattern("^SELECT [^;]+;$", "SELECT a, b FROM t WHERE c = 'd';"),
                  limit={"type": ["integer", "null"], "minimum": 1}),
    "regex_id": record(order=pattern("^[A-Z]{2,3}-[0-9]{3,8}$", "AB-123", "XYZ-12345678"),
                       isbn=pattern("^(97[89]-)?[0-9]{1,5}-[0-9]{1,7}-[0-9]{1,7}-[0-9X]$",
                                    "978-3-16-148410-0", "0-306-40615-2")),
    # Structure.
    "shape": {"oneOf": [record(type={"const": "circle"}, radius={"type": "number"}),
                        record(type={"const": "box"}, width={"type": "number"},
                               height={"type": "number"})],
              "examples": [{"type": "circle", "radius": 1.5}, {"type": "box", "width": 2,
                                                               "height": 3.25}]},
    "tree": {**TREE, "examples": [
        {"value": "root", "children": [{"value": "left leaf", "children": []},
                                       {"value": "右", "children": [{"value": "deep",
                                                                    "children": []}]}]}]},
    "json": {"$ref": "#/$defs/any", "$defs": {"any": {"anyOf": [
        {"type": ["null", "boolean", "number", "string"]}, array({"$ref": "#/$defs/any"}),
        {"type": "object", "additionalProperties": {"$ref": "#/$defs/any"}}]}},
             "examples": [{"a": [1, 2.5, {"b": None}], "c d": "e\"f"}, [[], {}, "x", True]]},
    "free": {"examples": [{"any": ["thing", 1]}, "just a text", 12.5e-3]},
    "quiz": array(record(question=text(10, 200), options=array(text(1, 60), minItems=4, maxItems=4),
                         answer={"type": "integer", "minimum": 0, "maximum": 3}), minItems=1,
                  maxItems=3),
    "recipe": record(name=text(1, 60), minutes={"type": "integer", "minimum": 1, "maximum": 1440},
                     ingredients=array(record(name=text(1, 40), amount=text(1, 20)), minItems=1),
                     steps=array(text(5, 300), minItems=1, maxItems=12)),
    "translation": record(source=pattern("^[a-z]{2}(-[A-Z]{2})?$", "en", "pt-BR"), text=TEXT,
                          alternatives=array(TEXT, maxItems=3)),
    "plan": record(goal=text(1, 200), steps=array(record(
        ("depends_on",), id={"type": "integer", "minimum": 1, "maximum": 99},
        action={"enum": ["search", "read", "write", "ask"]}, argument=text(0, 500),
        depends_on=array({"type": "integer", "minimum": 1, "maximum": 99}, maxItems=5)),
                                                       maxItems=8)),
    "settings": record(("theme", "font_size", "language", "proxy"), theme={
        "enum": ["light", "dark"]}, font_size={"type": "integer", "minimum": 6, "maximum": 72},
                       language=pattern("^[a-z]{2}$", "de"), proxy=URI),
}


def value(schema, rng, root=None):
  """Returns a value that fits the schema."""
  root = root or schema
  if "examples" in schema:
    return rng.choice(schema["examples"])
  if "enum" in schema:
    return rng.choice(schema["enum"])
  if "$ref" in schema:
    return value(root["$defs"][schema["$ref"].rsplit("/", 1)[-1]], rng, root)
  kind = schema["type"] if isinstance(schema["type"], str) else rng.choice(schema["type"])
  if kind == "object":
    required = schema.get("required", [])
    return {name: value(part, rng, root) for name, part in schema["properties"].items()
            if name in required or rng.random() < 0.5}
  if kind == "array":
    low = schema.get("minItems", 0)
    n = rng.randint(low, min(schema.get("maxItems", low + 4), low + 4))
    items = [value(schema["items"], rng, root) for _ in range(n)]
    if schema.get("uniqueItems"):
      items = [item for i, item in enumerate(items) if item not in items[:i]]
    return items
  if kind == "string":
    low, high = schema.get("minLength", 0), schema.get("maxLength", 200)
    # Often up to the limit, whose neighbourhood is what costs.
    n = high if rng.random() < 0.3 else rng.randint(low, min(high, low + 40))
    made = ""
    while len(made) < n:
      made += rng.choice(WORDS) + " "
    return made[:n]
  if kind == "integer":
    low = schema.get("minimum", -1000)
    return rng.randint(low, schema.get("maximum", low + 100000))
  if kind == "number":
    low = schema.get("minimum", 0)
    return round(low + rng.random() * (schema.get("maximum", low + 1000) - low), 2)
  return {"boolean": rng.random() < 0.5, "null": None}[kind]
