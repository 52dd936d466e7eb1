"""Plots: fear, repair, building, growing and giving."""
from .world import SIZE


def dark_fear(s):
    s.cast("A", adj=s.rng.choice(SIZE)); s.cast("B", adj=s.rng.choice(["old", "wise", "kind", "gentle"]))
    light = s.rng.choice(["lantern", "candle", "moon", "stars", "fireflies"])
    s.weather = "night"
    s.pick_place(only=["forest", "hill", "meadow", "lake", "garden"])
    s.ctx.update(time="night")
    s.say("{Once there was|There was once|Once upon a time, there was} <A.i> who was afraid of the dark.",
          "<A.i> {loved the day|liked the sun} but was afraid of the {dark|night}.",
          "Every night, <A.i> {hid under the blanket|closed both eyes tight}. <A> was afraid of the dark.")
    s.fact(["What was <A.full> afraid of?", "Why was <A.full> scared?"], ["<A.full> was afraid of the dark."])
    if s.who["A"].name:
        a = s.who["A"]
        s.fact([f"What was the {a.kind}'s name?"], [f"The {a.kind}'s name was {a.name}."])
    s.say('"The dark is {so big|so black}," <A> {said|used to say}. "{I cannot see what is in it.|Who knows what is in it?}"',
          "When the sun went down, every {shadow|sound} made <A.m> {jump|shake}." if s.prev_subject == "A" else "When the sun went down, every {shadow|sound} was scary.",
          "At night, every little sound seemed {loud|strange}.")
    s.new_par(0.3)
    s.say("One {night|evening}, <A> {could not sleep|had to walk home in the dark|sat awake and listened}.")
    s.maybe(0.5, "Something {moved|made a noise} <placespot>. \"{Who is there|What was that}?\" whispered <A>.",
            "\"Whoo, whoo,\" went the wind. <A> held <A.r> breath.")
    if "moved" in s.parts[-1] or "noise" in s.parts[-1]:
        s.say("But it was only <B.i>, who lived {near|close} by.", "{Out of the dark|Then out} came <B.i>.")
    else:
        s.say("<B.i> {heard <A.m>|saw <A.m>} and came {closer|over}.", "{Then|Just then} <B.i> came along the path.")
    s.say('"{Why are you awake|Are you all right|Why are you shaking}?" asked <B.n>. "I am afraid of the dark," said <A.n>.',
          '"{Do not be afraid|You are safe}," said <B.n>. "It is only me."')
    if light in ("moon", "stars"):
        s.ctx["light"] = "the " + light
        s.say('"{Come outside|Come with me}," said <B.n>, "and look up." {High above|In the sky}, <light> shone {softly|brightly}.')
        s.say('"Without the dark," said <B.n>, "you could not see <light>."',
    f'"<light> {"need" if light == "stars" else "needs"} the dark to shine," said <B.n>.',
              '"See? The night has its own {light|lights}," said <B.n>.')
    elif light == "fireflies":
        s.ctx["light"] = "the fireflies"
        s.say("<B.n> took <A.n> <placeto>. Hundreds of {tiny|small} lights danced in the air. They were fireflies!",
              '"Look," said <B.n>. All around them, fireflies {danced|glowed} like {little|tiny} stars.')
        s.say('"They only come out when it is dark," said <B.n>.', '"How {beautiful|pretty} they are!" said <A.n>.')
    else:
        s.ctx["light"] = f"a {light}"
        s.say(f"<B.n> lit a {{small|little}} {light}. The {{warm|golden}} light {{filled the room|chased the shadows away|made everything soft}}.",
              f"<B.n> {{had|carried}} a {light} and held it up. \"Look,\" said <B.n>, \"{{it is only a tree|there is nothing here but us}}.\"")
        s.say(f'"You may {{keep|have}} this {light}," said <B.n>. "{{A small light is enough|Even a small light is stronger than the dark}}."',
              '"A small light can {chase away|light up} {a big|the biggest} dark," said <B.n>.')
    s.fact(["What did <B.full> show <A.full>?", "What shone in the dark?", "What gave light in the dark?"],
           ["It was <light>." if light not in ("stars", "fireflies") else "They were <light>.", "<B.full> showed <A.full> <light>."])
    s.who_facts("helped <A.full>", "helped <A.full>")
    s.say("<A.n> {looked for a long time|looked and looked}. {The dark did not seem so big now|It was not scary at all}.",
          "{Slowly|Little by little}, <A.n> {stopped shaking|began to smile}.",
          '"It is {beautiful|not so bad}," {whispered|said} <A.n>.')
    s.ctx["feel"] = s.rng.choice(["brave", "safe", "calm"])
    s.fact(["How did <A.full> feel at the end?"], ["<A.full> felt <feel>.", "In the end, <A.full> felt <feel>."])
    s.say("{That night|Soon after}, <A> {fell asleep with a smile|slept well} and felt <feel>.",
          "From then on, <A> felt <feel>, even {at night|in the dark}.",
          "<A> felt <feel> and was not afraid {any more|of the night again}.")
    s.maybe(0.3, 'And when the next night came, <A> {said, "Good evening, dark!"|went out to say hello to the moon}.')
    s.asks += ["a <A.k> who is afraid of the dark", "the night", s.ctx["light"], "a little <A.k>",
               "being brave", "a <A.k> and a <B.k>"]
    s.tags.add("bed")


def broken_thing(s):
    thing, how, tool, fix = s.rng.choice([
        ("kite", "had a big hole in it", "paper and string", "put new paper over the hole"),
        ("cart", "had lost a wheel", "a hammer and a nail", "put the wheel back on"),
        ("boat", "had a hole in its side", "a small board and some nails", "closed the hole with a board"),
        ("chair", "had a broken leg", "some glue and a rope", "made the leg strong again"),
        ("fence", "had fallen down in the wind", "a hammer and some nails", "set the boards straight again"),
        ("coat", "had a hole in the sleeve", "a needle and thread", "sewed the hole shut"),
        ("basket", "had lost its handle", "some strong string", "made a new handle"),
        ("drum", "did not sound right any more", "a new piece of leather", "put a new top on it"),
        ("bridge", "had a broken board", "a new board and some nails", "put the new board in its place"),
        ("gate", "would not open any more", "some oil and a hammer", "made it swing like new")])
    s.ctx.update(thing=thing, how=how, tool=tool, fix=fix)
    s.cast("A"); s.cast("B", adj=s.rng.choice(["old", "clever", "patient", "wise", "busy"]))
    s.pick_weather(["sunny", "cloudy", "windy", "foggy"])
    s.pick_place(only={"boat": ["river", "lake"], "bridge": ["river"], "fence": ["farm", "meadow"], "gate": ["garden", "farm"]}.get(thing))
    s.opening(s.rng.choice(["morning", "afternoon"]))
    own = thing not in ("bridge", "fence", "gate")
    s.ctx["poss"] = "<A.r>" if own else "the"
    if own:
        s.say("<A> {wanted to use|looked at} <A.r> <thing>, but it <how>.",
              'But something was wrong. <A.s> <thing> <how>.',
              "{Today|That day} there was a problem: <A.s> <thing> <how>.")
    else:
        s.say("But the <thing> <how>.", "There <A> saw that the <thing> <how>.")
    s.fact(["What was broken?", "What was wrong with the <thing>?"], ["The <thing> <how>.", "The <thing> <how>."])
    s.say('"{Oh dear|Oh no}," said <A>. "{What shall I do now|Who can help me}?"',
          "<A> {tried to fix it|pushed and pulled}, but it {only got worse|was no use}.",
          "<A> {did not know what to do|sat down and thought}.")
    s.maybe(0.35, '"I wish I knew how to {fix|mend} it," {said|thought} <A>.')
    s.notice(0.2)
    s.new_par(0.3)
    s.meet()
    s.say('"{That is not so bad|I have seen worse}," said <B.n>{, looking at the <thing>|}.',
          '"{What happened here|What is the trouble}?" asked <B.n>. <A.n> showed <B.m> the <thing>.'
          if s.who["A"].female != s.who["B"].female else '"What happened here?" asked <B.n>.',
          "<B.n> looked at the <thing> {from all sides|for a long time}. \"{We can fix this|I know what to do}.\"")
    s.say("<B.n> {went home and came back with|brought|had} <tool>.",
          '"We need <tool>," said <B.n>. Soon they had everything.')
    s.fact(["What did they use to fix the <thing>?", "What did they need?"], ["They used <tool>.", "They needed <tool>."])
    s.say("{Together|Working side by side}, they <fix>.",
          "<A.n> held it {still|tight}, and <B.n> <fix>.",
          "{Step by step|Slowly and carefully}, they <fix>.")
    s.who_facts("helped <A.full>", "helped <A.full>")
    s.who_facts("helped to fix the <thing>", "helped to fix the <thing>")
    s.say("{Soon|Before long} the <thing> was {as good as new|better than before}.",
          '"There!" said <B.n>. "{It is as good as new|Good work}."',
          "The <thing> looked {fine|as good as new} {again|now}.")
    s.maybe(0.7, '"Thank you," said <A.n>. "{Now I know how to do it|You taught me something new}."',
            '"You are so clever{|, <B.v>}!" said <A.n>.',
            "<A.n> {thanked <B.n> and gave <B.m> a {warm bun|red apple}|clapped with joy}." if s.who["A"].female != s.who["B"].female
            else "<A.n> clapped with joy.")
    s.ending(True, s.rng.choice(["happy", "proud", "glad", "thankful"]))
    s.asks += ["a broken <thing>", "a <A.k> and a <thing>", "a <A.k> and a <B.k>", "a clever <B.k>", "working together"]


def build_together(s):
    thing, weather, places, steps, top = s.rng.choice([
        ("snowman", "snowy", ["garden", "hill", "village", "meadow"],
         ["rolled a big ball of snow", "put a smaller ball on top", "used a carrot for the nose", "found two black stones for the eyes"], "a red scarf"),
        ("sand castle", "sunny", ["beach"],
         ["filled a bucket with wet sand", "built four tall towers", "dug a deep ditch around it", "put shells on the walls"], "a small flag"),
        ("tree house", "sunny", ["forest", "garden"],
         ["carried boards up the tree", "made a strong floor", "put up four walls", "made a little window"], "a green flag"),
        ("raft", "sunny", ["river", "lake"],
         ["found some long logs", "tied the logs together with rope", "made a sail from an old shirt", "pushed it into the water"], "a blue flag"),
        ("kite", "windy", ["hill", "meadow", "garden"],
         ["crossed two thin sticks", "glued on some bright paper", "made a long tail", "tied on a ball of string"], "a yellow bow"),
        ("bird house", "cloudy", ["garden", "farm", "forest"],
         ["found some old boards", "cut a round door", "nailed the roof on", "painted it blue"], "a little bell")])
    s.ctx.update(thing=thing, top=top)
    s.cast("A"); s.cast("B"); s.pick_weather([weather]); s.pick_place(only=places)
    s.opening(s.rng.choice(["morning", "afternoon"]))
    s.say("<A> wanted to {build|make} a <thing>{, but it was too much work for one|}.",
          '"Today I want to {build|make} a <thing>," {said|thought} <A>.',
          "<A> had an idea. Why not build a <thing>?")
    s.fact(["What did they build?", "What did they make?", "What did <A.full> want to make?"],
           ["They made a <thing>."])
    s.meet()
    s.say('"What are you doing?" asked <B.n>. "I am making a <thing>," said <A.n>.',
          '"Would you like to {help|build a <thing> with me}?" asked <A.n>. "{Yes, please|Oh yes}!" said <B.n>.',
          '"Can I help?" asked <B.n>. "{Yes|Of course}!" said <A.n>. "{Two are better than one|The more, the better}."')
    s.who_facts("helped <A.full>", "helped <A.full>")
    s.new_par(0.3)
    pat = s.rng.randrange(3)
    if pat == 0:
        s.say(f"First they {steps[0]}. Then they {steps[1]}. {{After that|Next}}, they {steps[2]}{{, and at last they {steps[3]}|}}.")
    elif pat == 1:
        s.say(f"<A.n> {steps[0]}, and <B.n> {steps[1]}.")
        s.say(f"Then they {steps[2]}{{ and {steps[3]}|}}.")
    else:
        s.say(f"They {steps[0]} and {steps[1]}.", f"Together they {steps[0]}. Together they {steps[1]}.")
        s.say(f"Next, <A.n> {steps[2]}, while <B.n> {steps[3]}.")
    s.maybe(0.55, "{Oh no! |}{Suddenly|Just then} {one side|a part of it} fell down. \"{Never mind|That does not matter},\" said <B.n>. \"We will try again.\" And they did."
            if thing != "kite" else "The first string {broke|was too short}. \"{Never mind|That does not matter},\" said <B.n>, and they tried again.",
            "It was hard work, {but it was fun|but they sang while they worked}.",
            "They worked {for a long time|and laughed}.")
    s.say("{At last|In the end|Finally}, {it was done|the <thing> was ready}.",
          "When {it was done|they were done}, they {stepped back and smiled|looked at it for a long time}.")
    s.say("<B.n> {put|tied} <top> on the <thing>.",
          "On top they put <top>.")
    s.fact(["What did they put on the <thing>?"], ["They put <top> on the <thing>."]) if "top" not in s.parts[-1] else \
        s.fact(["What did they put on top?"], ["They put <top> on top."])
    s.say({"snowman": '"{He looks|He almost looks} alive!" {laughed|said} <A.n>.',
           "sand castle": '"It is fit for a {king|queen}!" said <A.n>.',
           "tree house": "From up there, they could see {the whole forest|far over the hills|the blue lake}.",
           "raft": "The raft floated {like a leaf|on the water}, and they {laughed with joy|sailed along the bank}.",
           "kite": "Up went the kite, higher and higher, until it was {a small spot in the sky|as small as a bird}.",
           "bird house": "The next day, {two small birds|a small bird} came to live in it."}[thing])
    s.ending(True, s.rng.choice(["happy", "proud", "glad"]))
    s.asks += ["a <thing>", "a <A.k> who makes a <thing>", "a <A.k> and a <thing>", "two friends who build a <thing>",
               "a <A.k> and a <B.k>"]


def grow_seed(s):
    plant, col = s.rng.choice([("sunflower", "yellow"), ("rose", "red"), ("pumpkin", "orange"), ("bean", "green"),
                               ("carrot", "orange"), ("tulip", "pink"), ("strawberry", "red")])
    s.ctx.update(plant=plant, pcol=col)
    s.cast("A"); s.cast("B"); s.pick_weather(["sunny", "cloudy"]); s.pick_place(only=["garden", "farm", "meadow", "hill"])
    s.say("In {early spring|spring}, <A.i> {found|was given} a {tiny|small|round} seed.",
          "<A.i> had a seed, {a very small one|no bigger than a drop of rain}.",
          "One spring day, <A.i> {planted|put} a small seed in the ground <placein>.",
          "\"What is this?\" asked <A.i> one spring day, and picked up a {tiny|small} seed.")
    planted = "in the ground" in s.parts[-1]
    if not planted:
        s.say("<A> {dug a little hole|made a hole in the ground} <placein> and {dropped it in|put it inside}.",
              "<A> planted it <placein>{, where the sun was warm|}.")
    s.fact(["What did <A.full> plant?"], ["<A.full> planted a seed.", "<A.full> planted a small seed."])
    s.fact(["Where did <A.full> plant the seed?"], ["<A.full> planted it <placein>."])
    s.say("Every {day|morning} <A> gave it {some water|a little water}.",
          "<A> watered it {every day|each morning} and {sang to it|waited}.")
    s.say("{One day passed. Two days passed|A day went by, and then another}. {Nothing happened|Nothing grew}.",
          "But nothing {happened|grew}{ for a whole week|}.",
          "Days went by, and there was {nothing to see|only brown earth}.")
    s.maybe(0.6, '"{Why does it not grow|Is it asleep}?" <A> {asked|wondered}.', "<A> {was sad|began to worry}.")
    s.new_par(0.25)
    s.meet()
    s.say('"{Be patient|Give it time}," said <B.n>. "{Good things need time|Seeds are slow, but they do not forget}."',
          '"{I have waited so long|It will not grow}," said <A.n>. "{Wait a little longer|Be patient}," said <B.n>.',
          "<B.n> looked at the ground. \"It {sleeps|is still sleeping},\" {said|explained} <B.h>. \"{Give it sun, water, and time|Wait and see}.\"")
    s.fact(["Who told <A.full> to be patient?", "Who helped <A.full>?"], ["It was <B.full>.", "<B.full> told <A.full> to be patient."])
    s.say("So <A.n> {waited|went on}: {a little water, a little song, every day|water in the morning and a song at night}.",
          "So <A.n> {waited|kept on} and did not give up.")
    s.say("{Then, one morning|One warm morning|And then one day}, {a tiny green leaf|a little green tip} {looked out of|came out of} the ground!",
          "{At last|Then}, after {some rain|a warm night}, there was {a small green leaf|a spot of green}!")
    s.say("It grew {and grew|taller every day|bigger and bigger}, and {by summer|in summer} it was a {big|beautiful} <pcol> <plant>.",
          "By {summer|the end of summer}, it was a {fine|big|beautiful} <pcol> <plant>.")
    s.fact(["What grew from the seed?", "What did the seed become?"], ["A <plant> grew from the seed.", "It became a <pcol> <plant>."])
    s.fact(["What colour was the <plant>?"], ["The <plant> was <pcol>."])
    if plant in ("pumpkin", "bean", "carrot", "strawberry"):
        s.maybe(0.8, "<A.n> {called|invited} <B.n>, and they {ate together|made a good meal of it|shared it}.")
    else:
        s.maybe(0.8, "<A.n> {called|invited} <B.n>, and they {sat beside it and smiled|looked at it together}.",
                "{Bees|Butterflies} came from far away to {see|visit} it.")
    s.ending(s.rng.random() < 0.5, s.rng.choice(["happy", "proud", "glad"]))
    s.asks += ["a seed", "a <A.k> and a seed", "a <plant>", "a <A.k> who grows a <plant>", "being patient", "spring"]


def gift(s):
    made, of = s.rng.choice([("scarf", "soft wool"), ("crown", "flowers"), ("necklace", "shells"), ("cake", "honey and nuts"),
                             ("boat", "wood"), ("picture", "bright colours"), ("song", "three simple notes"), ("blanket", "warm wool"),
                             ("pillow", "soft feathers")])
    s.ctx.update(made=made, of=of)
    s.cast("A"); s.cast("B"); s.pick_weather(); s.pick_place()
    occ = s.rng.choice(["birthday", "birthday", "first day of winter", "first day of summer"])
    s.ctx["occ"] = occ
    first = s.rng.random() < 0.5
    # Introduces both at once.
    s.say("<A.i> {had a good friend|was best friends with somebody}: <B.i>.",
          "<A.i> and <B.i> {had been friends for a long time|were good friends|were neighbours}.",
          "Two friends lived <placein>: <A.i> and <B.i>." if s.ctx["place"] not in ("river", "hill", "lake", "beach") else
          "Two friends lived close together: <A.i> and <B.i>.")
    s.say("{Tomorrow|Soon} it would be <B.s> birthday, and <A.n> {had no gift|did not have a present|wanted to give <B.n> something special}.",
          "It was almost <B.s> birthday. \"What can I give <B.n>?\" {asked|thought} <A.n>.",)
    s.fact(["Whose birthday was it?"], ["It was <B.s> birthday."])
    s.say("<A.n> had no {coins|money}, only {a kind heart and two busy hands|a good idea|time and love}." if s.who["A"].child else
          "<A.n> had no {coins|money}, only {a kind heart|a good idea|time and love}.",
          "<A.n> looked {at home|everywhere}, but nothing {seemed|was} right.",
          "<A.n> thought {about it|and thought} all {day|night} long.")
    s.new_par(0.25)
    s.say('Then <A.n> had an idea. "I will make a <made> {out of|from} <of>!"' if made not in ("song", "picture") else
          'Then <A.n> had an idea. "I will make a <made>!"',
          "{At last|Then} <A.n> knew what to do, and began to make a <made>{ out of <of>|}." if made not in ("song", "picture") else
          "{At last|Then} <A.n> knew what to do, and began to make a <made>.")
    s.fact(["What did <A.full> make?", "What was the gift?", "What did <A.full> give to <B.full>?"],
           ["<A.full> made a <made> for <B.full>.", "The gift was a <made>."])
    s.say("<A> worked {all night|until the candle was small|with great care}.",
          "It was not easy. {Twice|Three times} <A.n> had to {start again|begin again}.",
          "<A> worked, and smiled, and worked {again|some more}.")
    s.say("{The next day|When the big day came|On the birthday}, <A.n> {went to|knocked at the door of} <B.n> with the {gift|present} and said, \"Happy birthday!\"" if made != "song" else
          "{The next day|When the big day came|On the birthday}, <A.n> went to <B.n> and said, \"Happy birthday! {Listen|I have something for you}.\"",
          "{The next morning|On the day}, <B.n> opened the door. \"Happy birthday!\" {cried|said} <A.n>.")
    s.maybe(0.5, '"It is only a small thing," said <A.n>{ shyly|}.', '"I made it {for you|myself}," said <A.n>.')
    s.say(f"<B.n> {'listened' if made == 'song' else 'looked at it'} with {{wide|shining}} eyes. \"You made {{this|it}} for me?\"",
          "<B.n> was {so surprised|so happy} that <B.h> could not {speak|say a word}.",
          '"{This is the best gift of all|I have never had a better gift}!" said <B.n>.')
    if "happy" in s.parts[-1]:
        s.fact(["How did <B.full> feel?"], ["<B.full> was very happy."])
    s.say("{Then|After that} they {ate cake|danced and sang|had warm tea} {together|until late}.",
          '"{It comes from the heart}," said <B.n>, "and that is {the best thing about it|why I love it}."')
    s.ending(True, s.rng.choice(["happy", "glad", "proud"]))
    s.asks += ["a birthday", "a gift", "a <A.k> who makes a <made>", "a <A.k> and a <B.k>", "a <made>", "two friends"]
