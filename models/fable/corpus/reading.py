"""Short conversations that contain their own answers."""
from .chats import turn
from .facts import facts_chat
from .text import article, spin, upper_first
from .world import A_BOYS, A_GIRLS, BOYS, COLOURS, GIRLS, GOOD, OBJECTS, PLACES, SIZE, SPECIES

NAMES = GIRLS + BOYS + A_GIRLS + A_BOYS
FOODS = ["berries", "carrots", "nuts", "honey", "cheese", "soup", "bread", "corn", "fish", "apples", "mushrooms", "potatoes",
         "plums", "pears", "cherries", "cake", "milk", "tea"]


def reading(rng):
    """Returns a very short conversation that contains its own answers.

    Repeats words, remembers a name, or looks up one of a few statements. Nearly
    every answer is a copy: teaches the model to attend to earlier text, which
    stories need on every line.
    """
    f = lambda t: article(spin(rng, t))
    k = rng.random()
    out = []
    if k < 0.15:
        words = rng.sample(NAMES + list(SPECIES) + list(OBJECTS) + COLOURS + FOODS, rng.randint(2, 5))
        q = f("{Repeat after me|Say these words|Repeat these words|Say after me}: ") + ", ".join(words) + "."
        return turn("user", q) + turn("assistant", upper_first(", ".join(words)) + ".")
    if k < 0.27:
        x = article(f"the {rng.choice(SIZE + GOOD)} {rng.choice(list(SPECIES))} {rng.choice(['saw', 'found', 'lost', 'carried'])} "
                    f"a {rng.choice(COLOURS)} {rng.choice(list(OBJECTS))}")
        x = x.replace("the ", rng.choice(NAMES) + " and the ", 1) if rng.random() < .5 else upper_first(x)
        return turn("user", f("{Repeat after me|Say this|Repeat this}: ") + x + ".") + turn("assistant", x + ".")
    if k < 0.42:
        n = rng.choice(NAMES)
        out += [turn("user", f("{Hello! My|Hi! My|My|Hello, my} name is %s." % n)),
                turn("assistant", f("{Hello, %s! It is nice to meet you.|Hi, %s! Would you like to hear a story?|Hello, %s! I am Fable.}" % (n, n, n)))]
        if rng.random() < .3:
            q, a = facts_chat(rng)
            out += [turn("user", q), turn("assistant", a)]
        if rng.random() < .8:
            out += [turn("user", f("{What is my name?|Do you know my name?|Who am I?}")), turn("assistant", f("{Your name is %s.|You are %s.}" % (n, n)))]
        return "".join(out)
    n = rng.choice([1, 2, 2, 3, 3, 4])
    if rng.random() < .65:
        who = rng.sample(NAMES, n)
    else:
        who = ["the " + x for x in rng.sample(list(SPECIES), n)]
    objs, cols = rng.sample(list(OBJECTS), n), rng.sample(COLOURS, n)
    kinds, foods, places = rng.sample(list(SPECIES), n), rng.sample(FOODS, n), rng.sample([p[0] for p in PLACES.values()], n)
    spots = rng.sample(sorted({x for p in PLACES.values() for x in p[2]}), n)
    lines, qas = [], []
    mode = rng.choice(["has", "has", "is", "likes", "where", "found", "found", "mixed"])
    for i in range(n):
        w, o, c = who[i], objs[i], cols[i]
        m = rng.choice(["has", "likes", "where", "found"]) if mode == "mixed" else mode
        if m == "is" and w.startswith("the "):
            m = "likes"
        if m == "has":
            lines.append(f("%s has a %s %s." % (w, c, o)))
            qas += [(f"Who has the {o}?", f"{w} has the {o}."), (f"What does {w} have?", f("%s has a %s %s." % (w, c, o))),
                    (f"What colour is the {o}?", f"The {o} is {c}.")]
        elif m == "is":
            lines.append(f("%s is a %s." % (w, kinds[i])))
            qas += [(f"Who is the {kinds[i]}?", f"{w} is the {kinds[i]}."), (f"What animal is {w}?", f("%s is a %s." % (w, kinds[i])))]
        elif m == "likes":
            lines.append(f"{w} likes {foods[i]}.")
            qas += [(f"Who likes {foods[i]}?", f"{w} likes {foods[i]}."), (f"What does {w} like?", f"{w} likes {foods[i]}.")]
        elif m == "where":
            lines.append(f"{w} is {places[i]}.")
            qas += [(f"Who is {places[i]}?", f"{w} is {places[i]}."), (f"Where is {w}?", f"{w} is {places[i]}.")]
        else:
            lines.append(f("%s found a %s %s %s." % (w, c, o, spots[i])))
            qas += [(f"Who found the {o}?", f"{w} found the {o}."), (f"Where was the {o}?", f"The {o} was {spots[i]}."),
                    (f"What did {w} find?", f("%s found a %s %s." % (w, c, o))), (f"What colour was the {o}?", f"The {o} was {c}.")]
    text = " ".join(upper_first(x) for x in lines)
    asked = rng.sample(qas, min(len(qas), rng.choice([1, 2, 2, 3])))
    for i, (q, a) in enumerate(asked):
        out += [turn("user", (text + " " if i == 0 else "") + upper_first(q)), turn("assistant", upper_first(a))]
    return "".join(out)
