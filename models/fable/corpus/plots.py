"""All plots with their weights; tells a story with one of them."""
from .plots_away import journey, learn_skill, lost_little, night_sky, race
from .plots_home import good_night, market, music, new_friend, quarrel, rescue
from .plots_lost import found_owner, high_fruit, lost_found, share_food, storm_shelter
from .plots_work import broken_thing, build_together, dark_fear, gift, grow_seed
from .story import Story

PLOTS = [(lost_found, 3), (found_owner, 2), (high_fruit, 1.4), (storm_shelter, 1.5), (share_food, 1.5), (dark_fear, 1.6),
         (broken_thing, 1.5), (build_together, 1.5), (grow_seed, 1.3), (gift, 1.3), (journey, 1.5), (lost_little, 1.3),
         (race, 1.3), (learn_skill, 1.5), (night_sky, 1.2), (quarrel, 1.2), (new_friend, 1.2), (rescue, 1.4), (market, 1.1),
         (good_night, 1.1), (music, 1.0)]
_P, _W = [p for p, _ in PLOTS], [w for _, w in PLOTS]


def make_story(rng, max_words=210):
    while True:
        s = Story(rng)
        rng.choices(_P, _W)[0](s)
        t = s.text()
        if 70 <= len(t.split()) <= max_words:
            for key, w in s.who.items():
                if w.known and w.name and not w.child:
                    s.fact([f"What kind of animal was {w.name}?", f"What animal was {w.name}?"], [f"{w.name} was a {w.kind}."])
                    if key != "A":
                        s.fact([f"What was the {w.kind}'s name?", f"What was the name of the {w.kind}?"],
                               [f"The {w.kind}'s name was {w.name}."])
            a = s.who["A"]
            s.fact(["Who is the story about?", "Who is this story about?"],
                   [f"The story is about a {a.kind} named {a.name}." if a.name else f"The story is about a {a.kind}."])
            return s, t
