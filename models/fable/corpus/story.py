"""State of a story: its characters, its sentences and the facts it has stated."""
import re

from .text import TAG, article, capitals, spin
from .world import (
    A_BOYS, A_GIRLS, BOYS, GIRLS, GOOD, NOTICES, OBJECTS, PLACES, SIZE, SPECIES, WEATHER)


class Who:
    """A character."""

    def __init__(self, kind, female, name=None, adj=None):
        self.kind, self.female, self.name, self.adj = kind, female, name, adj
        self.child = kind in ("girl", "boy")
        self.known = False

    def full(self, rng):
        """Returns the name for answers: Pip, Pip the fox, the fox, Mia."""
        if self.name:
            return self.name if self.child or rng.random() < 0.75 else f"{self.name} the {self.kind}"
        return "the " + self.kind


class Story:
    def __init__(self, rng):
        self.rng, self.parts, self.facts, self.asks = rng, [], [], []
        self.ctx, self.who = {}, {}
        self.prev_subject, self.prev_seen = None, set()
        self.cur_subject, self.cur_seen = None, set()
        self.tags = set()

    # ---- cast
    def cast(self, key, kinds=None, avoid=(), child=0.3, female=None, adj=None, named=0.7):
        rng = self.rng
        young = rng.choice(SIZE + GOOD) if adj in ("old", "wise") else adj     # for children
        taken = {w.kind for w in self.who.values()} | set(avoid)
        names = {w.name for w in self.who.values()}
        if female is None:
            others = [w.female for w in self.who.values()]
            female = (not others[0]) if others and rng.random() < 0.85 else rng.random() < 0.5
        if kinds is None and rng.random() < child:
            kind = "girl" if female else "boy"
            if kind in taken:
                female, kind = not female, ("boy" if female else "girl")
            if kind not in taken:
                name = rng.choice([n for n in (GIRLS if female else BOYS) if n not in names])
                w = Who(kind, female, name, young or rng.choice(SIZE + GOOD))
                self.who[key] = w
                return w
        kind = rng.choice([k for k in (kinds or SPECIES) if k not in taken])
        name = None
        if rng.random() < named:
            name = rng.choice([n for n in (A_GIRLS if female else A_BOYS) if n not in names])
        w = Who(kind, female, name, adj or rng.choice(SIZE + GOOD))
        self.who[key] = w
        return w

    # ---- references
    def _ref(self, key, part):
        w, rng = self.who[key], self.rng
        if part == "h":
            return "she" if w.female else "he"
        if part == "m":
            return "her" if w.female else "him"
        if part == "r":
            return "her" if w.female else "his"
        if part == "f":
            return "herself" if w.female else "himself"
        if part == "k":
            return w.kind
        if part == "v":
            return w.name or w.kind.capitalize()
        if part == "full":
            return w.full(rng)
        if part == "i":
            w.known = True
            self._saw(key)
            if w.child and rng.random() < 0.25:
                return f"a {w.kind} {rng.choice(['named', 'called'])} {w.name}"
            s = f"a {w.adj} {w.kind}"
            return s + f" {rng.choice(['named', 'called'])} {w.name}" if w.name else s
        assert w.known, (key, self.parts)
        if part == "" and key not in self.cur_seen and self.prev_subject == key:
            clash = any(o != key and self.who[o].female == w.female
                        for o in self.prev_seen | self.cur_seen)
            if not clash and rng.random() < 0.6:
                self._saw(key)
                return "she" if w.female else "he"
        self._saw(key)
        if w.name and (w.child or part == "s" or rng.random() < 0.8):
            r = w.name
        else:
            r = "the " + w.kind
        return r + "'s" if part == "s" else r

    def _saw(self, key):
        if self.cur_subject is None:
            self.cur_subject = key
        self.cur_seen.add(key)

    def _sentence_end(self):
        if self.cur_subject is not None:
            self.prev_subject, self.prev_seen = self.cur_subject, self.cur_seen
        self.cur_subject, self.cur_seen = None, set()

    def fill(self, t):
        t = spin(self.rng, t)
        out, at = [], 0
        for m in re.finditer(r"<([A-Za-z]+[0-9]?)(?:\.([a-z]+))?>", t):
            lit = t[at:m.start()]
            if re.search(r'[.!?]"?\s', lit):
                self._sentence_end()
            out.append(lit)
            key, part = m[1], m[2] or ""
            out.append(self._ref(key, part) if key in self.who else str(self.ctx[key]))
            at = m.end()
        out.append(t[at:])
        s = TAG.sub(r"\1\3 \2", "".join(out))      # '" said she' -> '" she said'
        return capitals(article(s))

    # ---- telling
    def say(self, *options):
        self.parts.append(self.fill(self.rng.choice(options)))
        self._sentence_end()

    def maybe(self, p, *options):
        if self.rng.random() < p:
            self.say(*options)

    def new_par(self, p=0.5):
        if self.parts and self.rng.random() < p and self.parts[-1] != "\n\n":
            self.parts.append("\n\n")
            self.prev_subject = None

    def fact(self, qs, answers):
        """Adds question and answer templates about the last sentence."""
        self.facts.append((qs, answers))

    def fixed(self, t):
        """Fills a template outside the story: takes no pronouns from context."""
        self.prev_subject, self.prev_seen = None, set()
        self.cur_subject, self.cur_seen = None, set()
        return self.fill(t)

    def text(self):
        s = " ".join(self.parts).replace(" \n\n ", "\n\n").strip()
        return s

    # ---- shared beats
    def pick_obj(self, key="obj", only=None, avoid=()):
        o = self.rng.choice([x for x in (only or OBJECTS) if x not in avoid])
        self.ctx[key] = o
        self.ctx[key + "col"] = self.rng.choice(OBJECTS[o][0])
        self.ctx[key + "use"] = OBJECTS[o][1]
        return o

    def pick_place(self, key="place", only=None, avoid=()):
        p = self.rng.choice([x for x in (only or PLACES) if x not in avoid])
        self.ctx[key] = p
        self.ctx[key + "in"], self.ctx[key + "to"] = PLACES[p][0], PLACES[p][1]
        self.ctx[key + "spot"] = self.rng.choice(PLACES[p][2])
        return p

    def pick_weather(self, only=None):
        w = self.rng.choice(only or list(WEATHER))
        self.weather = w
        self.ctx["weather"] = w
        self.ctx["wadj"] = self.rng.choice(WEATHER[w][0].split("|"))
        return w

    def weather_line(self, fact=True):
        self.say(*WEATHER[self.weather][1])
        self.weather_fact()

    def weather_fact(self):
        word = {"sunny": "sunny", "windy": "windy", "rainy": "rainy", "snowy": "cold and snowy",
                "foggy": "foggy", "cloudy": "cloudy"}[self.weather]
        if "weather" not in self.tags:
            self.tags.add("weather")
            self.fact(["What was the weather like?", "How was the weather in the story?",
                       "Was it sunny or rainy that day?" if self.weather in ("sunny", "rainy")
                       else "What was the weather like that day?"],
                      [f"It was {word}.", f"The weather was {word}."])

    def notice(self, p=0.35):
        if self.rng.random() < p and getattr(self, "weather", None):
            left = [x for x in NOTICES[self.weather] if x not in self.tags]
            if left:
                x = self.rng.choice(left)
                self.tags.add(x)
                self.say(x)

    def opening(self, time="morning", where=True):
        """Introduces A, the weather and (maybe) the place <place>."""
        a, rng = self.who["A"], self.rng
        self.ctx["time"] = time
        live = SPECIES[a.kind][0] if not a.child else rng.choice(
            ["in a small house by the river", "in the village", "in a house at the edge of the forest",
             "in a yellow house with a round door"])
        self.ctx["live"] = live
        roll = rng.random()
        told_home = False
        if roll < 0.24:
            self.say("{Once upon a time, there was|Once there was|There was once|Long ago, there was} <A.i> who lived <live>.",
                     "Once upon a time, <A.i> lived <live>.",
                     "<A.i> lived <live>.")
            told_home = True
            if rng.random() < 0.5:
                self.character()
            if rng.random() < 0.85:
                self.say("One <wadj> <time>, <A> {went|walked} <placeto>." if where else
                         "One <wadj> <time>, <A> {was at home|sat at home}.",
                         "One <time>, <A> {decided to go|went out and walked} <placeto>." if where else
                         "One <time>, <A> woke up and looked outside.")
                if rng.random() < 0.6:
                    self.weather_line()
            else:
                self.weather_line()
        elif roll < 0.44:
            self.say("It was a <wadj> <time>{| <placein>}." if where else "It was a <wadj> <time>.")
            self.weather_fact()
            if rng.random() < 0.45:
                self.weather_line()
            if where:
                self.say("<A.i> was {walking|playing|out} <placein>.",
                         "<A.i> had come <placeto> {to play|to look around|for a walk}.",
                         "<A.i> {walked slowly|hurried|skipped} <placeto>.")
            else:
                self.say("<A.i> {was at home|looked outside}.")
            if rng.random() < 0.4:
                self.character()
        elif roll < 0.62:
            early = "Early one" if time == "morning" else "One"
            self.say("One <wadj> <time>, <A.i> {went|walked|set out} <placeto>." if where else
                     "One <wadj> <time>, <A.i> {sat at home|woke up at home}.",
                     f"{early} <time>, <A.i> {{went|set out}} <placeto>." if where else "One <time>, <A.i> {looked outside|looked up at the sky}.")
            if self.ctx["wadj"] in self.parts[-1]:
                self.weather_fact()
            if rng.random() < 0.6:
                self.weather_line()
            if rng.random() < 0.3:
                self.character()
        elif roll < 0.8:
            if rng.random() < 0.5:
                self.tags.add("character")
            self.say("<A.i> {loved|liked} {quiet days|long walks|stories|good friends|small adventures|to help others|to sing|new things}.",
                     "Everyone {liked|knew} <A.i> who lived <live>.",
                     "There was nobody as {kind|curious|cheerful|busy} as <A.i>." if a.adj in SIZE else
                     "Everyone {knew|liked} <A.i>.")
            if rng.random() < 0.4:
                self.character()
            self.say("One <wadj> <time>, <A> {went|walked|set out} <placeto>." if where else
                     "One <wadj> <time>, <A> was at home.")
            self.weather_fact()
            if rng.random() < 0.4:
                self.weather_line()
        else:
            self.say(*WEATHER[self.weather][1])
            self.weather_fact()
            self.say(("<A.i> was glad to be outside, and {went|walked} <placeto>." if self.weather in ("sunny", "cloudy") else
                      "<A.i> did not mind, and {went|walked} <placeto>.") if where else
                     "<A.i> {sat at home|stayed at home}.",
                     "On a <time> like this, <A.i> {liked to walk|went} <placeto>." if where else
                     "On a <time> like this, <A.i> liked to stay at home.")
            if rng.random() < 0.4:
                self.character()
        if a.name:
            self.fact([f"What was the {a.kind}'s name?", f"What is the {a.kind} called?",
                       f"What is the name of the {a.kind}?"],
                      [f"The {a.kind}'s name was {a.name}.", f"The {a.kind} was called {a.name}."])
        if told_home and not a.child:
            self.fact(["Where did <A.full> live?", "Where was <A.s> home?" if a.name else "Where did <A.full> live?"],
                      [f"<A.full> lived {live}."])
        if where:
            self.fact(["Where did the story happen?", "Where does the story take place?"],
                      [f"The story {{happened|took place}} {self.ctx['placein']}."])
        self.notice(0.25)

    def character(self):
        a = self.who["A"]
        if "character" in self.tags:
            return
        self.tags.add("character")
        likes = ["<A> {loved to|liked to} {explore|sing|tell stories|help others|look at the clouds}.",
                 "<A> {had a kind heart|had many friends|was always ready to help}.",
                 "<A> was never in a hurry.",
                 "<A> liked {simple|small|quiet} things."]
        if not a.child:
            food = SPECIES[a.kind][1]
            likes.append(f"<A> loved {food} more than anything.")
        self.say(*likes)

    def meet(self):
        """Introduces B, who may have heard the last sentence."""
        event = '"' in self.parts[-1]
        more = ["<B.i> {heard this|was near} and came closer."] if event else []
        self.say("{Just then|Soon|After a while|A little later}, <B.i> came {by|along|along the path}.",
                 "{Then|Just then} <A.h> met <B.i>." if self._solo() else "<B.i> came {by|along}.",
                 "{On the path|Not far away|Near by} {stood|sat} <B.i>.", *more)

    def _solo(self):
        return self.prev_subject == "A" and self.who["A"].female != self.who["B"].female

    def who_facts(self, verb_q, verb_a, who="B"):
        self.fact([f"Who {verb_q}?"], [f"<{who}.full> {verb_a}.", f"It was <{who}.full>."])

    def feel_end(self, word=None):
        w = word or self.rng.choice(["happy", "glad", "thankful", "happy", "cheerful"])
        self.ctx["feel"] = w
        self.fact(["How did <A.full> feel at the end?", "How did <A.full> feel in the end?"],
                  ["<A.full> felt <feel>.", "In the end, <A.full> was <feel>."])
        return w

    def ending(self, together=True, word=None):
        self.new_par(0.3)
        w = self.feel_end(word)
        opts = ["<A> {felt|was} {very |so |}<feel>.",
                "<A> went home, {tired but <feel>|<feel> and a little tired}." if w != "calm" else "<A> went home, calm and a little tired.",
                "That {evening|night}, <A> was {very |}<feel>.",
                "<A> smiled, for <A.h> {felt|was} <feel>.",
                "On the way home, <A> felt {very |so |}<feel>."]
        if self.ctx.get("time") in ("evening", "night"):
            opts = [o for o in opts if "evening" not in o]
        self.say(*opts)
        if together:
            self.maybe(0.6, "{From that day on|After that day|Since then}, {<A.n> and <B.n>|the two of them|the two friends} {were the best of friends|were good friends|met every day|often walked together|always helped each other}.",
                       "It is {good|nice} to have a friend.",
                       "{<A.n> and <B.n>|The two friends} {laughed all the way home|talked until the stars came out|said good night and went to bed|knew that they would meet again soon}.",
                       "A {good|true} friend is {better than gold|a great treasure|like a warm fire}.",
                       "And so a small {problem|thing} became the {start|beginning} of a {big|good} friendship.")
        else:
            self.maybe(0.5, "It had been a {good|long and good|very good} day.",
                       "{Sometimes|Often}, small things {are the best|matter most}.",
                       "And that night, <A> {slept well|had sweet dreams|slept deeply}.",
                       "What a {day|good day} it had been!")
