"""Conversations about stories, facts and poems."""
from .facts import facts_chat
from .plots import make_story
from .text import article, spin, upper_first

IM_S, IM_E = "<|im_start|>", "<|im_end|>"


def turn(role, text):
    return f"{IM_S}{role}\n{text}{IM_E}\n"


def ask_story(rng, s):
    """Returns a request that the story fulfils."""
    want = s.fixed(rng.choice(s.asks))
    want = want[0].lower() + want[1:]
    a = s.who["A"]
    r = rng.random()
    if r < 0.72:
        p = spin(rng, "{Tell me a story about <w>.|Tell me a story about <w>|Tell me a {short|little} story about <w>.|Can you tell me a story about <w>?|"
                 "Please tell me a story about <w>.|Write a {short |}story about <w>.|I would like {to hear |}a story about <w>.|"
                 "Could you write a story about <w>?|A story about <w>, please.|Do you know a story about <w>?|tell me a story about <w>}")
        if "bed" in s.tags and rng.random() < .5:
            p = spin(rng, "{Tell me|Can you tell me|I would like} a bedtime story about <w>") + "."
            p = p[:-1] + "?" if p.startswith("Can") else p
        return p.replace("<w>", want)
    if r < 0.85 and a.name:
        x = f"a {a.kind} named {a.name}"
        return article(spin(rng, "{Tell me a story about <w>.|Can you tell me a story about <w>?|Write a story about <w>.|A story about <w>, please.}").replace("<w>", x))
    if "bed" in s.tags:
        return spin(rng, "{Tell me a bedtime story.|Can you tell me a bedtime story, please?|I cannot sleep. Tell me a story.|Please tell me a good night story.}")
    return spin(rng, "{Tell me a story.|Can you tell me a story?|Please tell me a short story.|Tell me something nice.|I would like to hear a story.|Make up a story for me.}")


def qa(rng, s, fact):
    q = s.fixed(rng.choice(fact[0]))
    a = s.fixed(rng.choice(fact[1]))
    return q, a


POEMS = [  # (topic words, opening couplets, closing couplets)
    ("the moon", ["The moon is {round|big} and {bright|white} tonight,\nit fills the {quiet|sleepy} world with light.", "The moon looks {down|in} with a gentle face\nand shines on every {little|quiet} place."],
     ["{Good night|Sleep well}, {dear|little} fox, sleep well, {small|dear} mouse,\nthe moon is watching every house.", "So close your eyes and {dream|sleep} till day,\nthe moon will chase the dark away."]),
    ("rain", ["Drip and drop upon the tree,\nthe rain {sings|plays} songs for you and me.", "Tap, tap, tap, the rain comes down\non every {roof|house} in all the town."],
     ["And when the {clouds|rain} have gone away,\nthe {flowers|children} {laugh|dance} and greet the day.", "{Come in|Sit down}, my friend, and have some tea,\nand watch the {happy|silver} rain with me."]),
    ("snow", ["Softly, softly falls the snow\non the {village|garden} far below.", "The snow is {deep|soft}, the snow is white,\nit {fell|came} in secret in the night."],
     ["We build a {snowman|castle}, big and tall,\nand laugh together, one and all.", "Put on your hat and come with me,\nthere is a {sleepy|snowy} world to see."]),
    ("a fox", ["A little fox with fur so red\nwas sleeping in a leafy bed.", "A fox came {running|walking} down the hill\nwhen all the world was {cold|calm} and still."],
     ["It looked at me, then ran away,\nbut I will see it {one fine|another} day.", "{Good night|Hello}, dear fox, so quick and {bright|light},\nrun home, run home, into the night."]),
    ("spring", ["The sun is {warm|back}, the grass is green,\nthe {finest|sweetest} {spring|day} we have ever seen.", "A tiny seed woke up today\nand pushed the {brown|heavy} earth away."],
     ["The bees are {busy|humming} in the tree,\nand spring is {here|smiling} for you and me.", "So {sing|dance} with me and clap your hands,\nfor spring has come to all the lands."]),
    ("a friend", ["A friend is someone kind and true,\nwho {laughs|walks} and {sings|talks} and cries with you.", "When I am sad and all alone,\na friend will come and walk me home."],
     ["So take my hand and come along,\nand we will {share|sing} a {little|happy} song.", "Of all the {things|gifts} that I have known,\na friend is best to call my own."]),
    ("the stars", ["The stars come out, first one, then two,\nthey {shine|blink} for me, they {shine|blink} for you.", "Above the {hill|house}, above the tree,\na {thousand|hundred} stars look down on me."],
     ["I count them {softly|slowly} in my bed\nuntil the dreams fill up my head.", "{Good night|Sleep well}, {dear|small} stars, so far, so bright,\nplease keep us company tonight."]),
]


def poem(rng):
    t, o, c = rng.choice(POEMS)
    q = spin(rng, "{Write a {short |}poem about <t>.|Can you write a poem about <t>?|Tell me a poem about <t>.|A poem about <t>, please.|Please write a little poem about <t>.}").replace("<t>", t)
    body = [spin(rng, rng.choice(o)), spin(rng, rng.choice(c))]
    lines = [upper_first(x) for p in body for x in p.split("\n")]
    return q, "\n".join(lines)


def chat(rng, focus=False):
    """Returns one conversation; with focus, one with many questions."""
    r = rng.random()
    if focus:
        r = 0.0 if r < 0.65 else 0.8
    out = []
    if rng.random() < 0.08:
        out.append(turn("system", spin(rng, "{You are Fable, a small model that tells stories.|You are a helpful assistant.|You are a friendly storyteller.|You are a helpful and kind assistant.}")))
    if r < 0.70:
        if rng.random() < 0.06:
            out += [turn("user", spin(rng, "{Hello!|Hi!|Hello|Hi}")), turn("assistant", spin(rng, "{Hello! Would you like to hear a story?|Hi! I am Fable. Shall I tell you a story?}"))]
        s, t = make_story(rng, 190)
        out += [turn("user", ask_story(rng, s)), turn("assistant", t)]
        n = rng.choice([3, 4, 5, 6] if focus else [0, 1, 1, 2, 2, 3, 4])
        facts = rng.sample(s.facts, min(n, len(s.facts)))
        seen = set()
        for f in facts:
            q, a = qa(rng, s, f)
            if q in seen:
                continue
            seen.add(q)
            out += [turn("user", q), turn("assistant", a)]
        if n < 2 and rng.random() < .12:
            s, t = make_story(rng, 130)
            out += [turn("user", spin(rng, "{Tell me another story.|Another one, please.|Can you tell me another story?|One more story, please.}")), turn("assistant", t)]
            if rng.random() < .5:
                q, a = qa(rng, s, rng.choice(s.facts))
                out += [turn("user", q), turn("assistant", a)]
        elif rng.random() < .1:
            out += [turn("user", spin(rng, "{Thank you!|Thanks!|That was a nice story.|I liked that story.}")),
                    turn("assistant", spin(rng, "{You are welcome!|You are welcome. I am glad that you liked it.|It was my pleasure.}"))]
    elif r < 0.95:
        for _ in range(5 if focus else rng.choice([1, 1, 2, 3, 5])):
            q, a = facts_chat(rng)
            out += [turn("user", q), turn("assistant", a)]
        if rng.random() < .06:
            s, t = make_story(rng, 190)
            out += [turn("user", ask_story(rng, s)), turn("assistant", t)]
    else:
        q, a = poem(rng)
        out += [turn("user", q), turn("assistant", a)]
    return "".join(out)
