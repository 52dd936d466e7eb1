"""Plots: journeys, races, lessons and night skies."""
from .story import Who
from .world import BIG, CLIMBERS, SWIMMERS, WEATHER


def journey(s):
    rel = s.rng.choice(["grandmother", "grandfather", "aunt", "uncle"])
    carry = s.rng.choice(["a basket of apples", "a jar of honey", "a letter", "a warm scarf", "fresh bread", "a small cake", "a bunch of flowers"])
    s.ctx.update(rel=rel, carry=carry, relhe="she" if rel in ("grandmother", "aunt") else "he", relm="her" if rel in ("grandmother", "aunt") else "him",
                 good=", which smelled so good" if carry in ("fresh bread", "a small cake", "a bunch of flowers") and s.rng.random() < .5 else "")
    s.cast("A"); s.cast("B", kinds=SWIMMERS + BIG + ["turtle"]); s.pick_weather(["sunny", "cloudy", "windy", "foggy"])
    goal = s.rng.choice(["on the other side of the hill", "on the other side of the river", "beyond the forest", "in the next village"])
    s.ctx["goal"] = goal
    s.pick_place("place", only=["forest", "meadow", "hill", "village"])
    s.say("One <wadj> morning, <A.i> {set out|left home} to visit <A.r> <rel>, who lived <goal>.",
          "<A.i> wanted to visit <A.r> <rel>, who lived <goal>.",
          "Far away, <goal>, lived the <rel> of <A.i>. One <wadj> day, <A> {set out|went} to visit <relm>.")
    if s.ctx["wadj"] in s.parts[-1]:
        s.weather_fact()
    s.fact(["Who did <A.full> visit?", "Who did <A.full> want to see?"], ["<A.full> visited <A.r> <rel>.", "<A.full> went to see <A.r> <rel>."])
    s.fact([f"Where did the <rel> live?"], [f"The <rel> lived <goal>."])
    if "wanted to visit" in s.parts[-1]:
        s.say("One <wadj> {day|morning}, <A> {set out|went on <A.r> way}.", "So one <wadj> morning, <A> left home.")
        s.weather_fact()
    s.say("<A> carried <carry><good>.",
          "In a small bag <A> had <carry>." if carry not in ("a basket of apples", "a bunch of flowers") else "<A> took <carry> along.",
          "<A> took <carry> as a present.")
    s.fact(["What did <A.full> carry?", "What did <A.full> bring?"], ["<A.full> {carried|brought} <carry>."])
    s.maybe(0.5, *WEATHER[s.weather][1])
    s.maybe(0.6, "<A> walked {past the old mill|through the trees|over a little bridge} and {along the river|up the road|down the road}.",
            "The {road|path} was long, but <A> {sang a song|counted the trees|hummed softly} {as <A.h> walked|on the way}.",
            "<A> {hopped|walked} and {sang|whistled}, and the {road|path} seemed {short|shorter}.")
    s.notice(0.2)
    s.new_par(0.3)
    prob = s.rng.choice(["river", "lost", "tired"])
    if prob == "river":
        s.say("But then <A.n> came to a wide {river|stream}, and {there was no bridge|the bridge was gone}.",)
        s.meet()
        if s.who["B"].kind in SWIMMERS:
            s.say('"I have a little boat," said <B.n>. "{I will take you across|Hop in}."',
                  '"I know this water well," said <B.n>, and showed <A.n> where {to cross|it was not deep}.')
        else:
            s.say('"{Climb on my back|Sit on my back}," said <B.n>. "I will carry you."' if s.who["A"].kind not in ("bear", "deer", "goat") else
                  '"I know where the water is not deep," said <B.n>. "{Come with me|Follow me}."',
                  '"I know where the water is not deep," said <B.n>. "{Come with me|Follow me}."')
        s.fact(["Who helped <A.full> to cross the water?", "Who helped <A.full>?"], ["<B.full> helped <A.full>.", "It was <B.full>."])
    elif prob == "lost":
        s.say("But then the path {split in two|came to an end}, and <A.n> did not know where to go.",
              "{Soon|But soon} <A.n> {was lost|had lost the way}. Every tree looked the same.")
        s.meet()
        s.say('"Where are you going?" asked <B.n>. "To my <rel>," said <A.n>{|}.',
              '"Are you lost?" asked <B.n>. "Yes," said <A.n>. "I {want to visit|am on my way to} my <rel>."')
        s.say('"{I know the way|I can show you}," said <B.n>, and {they walked together|went ahead}.',
              '"Go {left|right} at the {big stone|old tree}," said <B.n>, "{and then straight on|and you will be there soon}."')
        s.fact(["Who showed <A.full> the way?", "Who helped <A.full>?"], ["<B.full> showed <A.full> the way.", "It was <B.full>."])
    else:
        s.say("{After a while|By noon}, <A.n> was so tired that <A.h> had to {sit down|rest}.",)
        s.meet()
        s.say('"You look tired," said <B.n>. "{Drink some water|Have a rest with me}{, and then we will go on together|}."',
              "<B.n> gave <A.n> {some cool water|half of an apple} and {a kind word|sat down, too}.")
        s.fact(["Who helped <A.full>?"], ["<B.full> helped <A.full>.", "It was <B.full>."])
    s.maybe(0.6, '"Thank you!" said <A.n>, and {went on|waved goodbye}.' if prob != "lost" else '"Thank you!" said <A.n>.',
            '"How kind you are!" said <A.n>.')
    s.say("{At last|Before the sun went down|In the afternoon}, <A.n> {saw|came to} the house of <A.r> <rel>.",
          "When <A.n> {arrived|knocked}, the <rel> {opened the door and smiled|was so happy that <relhe> danced}.")
    s.say('"{What a surprise|Come in, my dear}!" said the <rel>.',
          '"For me? {How lovely|How kind}!" said the <rel>.',
          "They {drank tea|ate soup|talked for hours} and {laughed|told stories} until {evening|late}.")
    s.ending(False)
    s.asks += ["a <A.k> who visits <A.r> <rel>", "a journey", "a <A.k> on a long walk", "a <A.k> and a <B.k>", "a <rel>"]


def lost_little(s):
    baby, parent = s.rng.choice([("duckling", "duck"), ("kitten", "cat"), ("puppy", "dog"), ("lamb", "sheep"), ("chick", "hen"),
                                 ("bear cub", "bear"), ("bunny", "rabbit")])
    s.ctx.update(baby=baby, parent=parent)
    s.cast("A", avoid=[parent]); s.pick_weather(); s.pick_place()
    s.ctx["time"] = "afternoon"
    s.opening(s.rng.choice(["morning", "afternoon"]))
    f = s.rng.random() < .5
    w = Who(baby, f, None, s.rng.choice(["tiny", "lost", "small"])); s.who["B"] = w
    s.say("{Suddenly|Then} <A.n> heard {a small voice|someone crying} <placespot>.",
          "Something <placespot> {moved|made a sound}.",
          "What was that sound <placespot>?")
    s.say("It was <B.i>, all alone.", "There sat <B.i>, {shaking|crying softly}.")
    s.fact(["Who was lost?", "Who was crying?", "Who did <A.full> find?"], ["It was <B.full>.", "<B.full> was lost." ])
    s.fact(["Where was <B.full>?"], ["<B.full> was <placespot>."])
    s.say('"{Why are you crying|What is wrong}, little one?" asked <A.n>. "I cannot find my mother," said <B.n>.',
          '"I {want my mother|am lost}," {cried|said} <B.n>.')
    s.say('"{Do not cry|Do not be afraid}," said <A.n>. "{We will find her|I will help you find her}."',
          "<A.n> {dried <B.r> tears|sat down beside <B.n>}. \"We will look for your mother together.\"")
    s.new_par(0.3)
    look = s.rng.sample(["They {asked|looked} {by|near} the well, but {no mother was there|she was not there}.",
                         "They asked {a snail|an old toad|a bee}, who {only shook its head|did not know}.",
                         "They called {loudly|again and again}, but only the {wind|birds} answered.",
                         "They looked behind {the hill|every bush|the big stone}, but she was not there."], s.rng.choice([1, 2]))
    for i, x in enumerate(look):
        s.say(x if i == 0 else "Then " + x[0].lower() + x[1:])
    s.maybe(0.5, "When <B.n> was {tired|too tired to walk}, <A.n> carried <B.m>." if s.who["A"].kind not in ("mouse", "frog") else
            "When <B.n> was tired, they {rested|sat down} for a while.",
            "To {cheer up <B.n>|make <B.n> smile}, <A.n> {sang a funny song|told a funny story|made a funny face}.")
    s.say('{At last|Then}, from far away, they heard {a call|a voice}. "Where are you, my little one?"',
          "{At last|Then} they saw a {big|worried} <parent> running {toward|to} them.")
    s.say("It was the mother <parent>!" if "voice" in s.parts[-1] or "call" in s.parts[-1] else "\"Mother!\" cried <B.n>.",
          "\"{Mother|Mama}!\" {cried|called} <B.n>, and {ran to her|jumped for joy}.")
    s.fact(["Who was the mother of <B.full>?", "Who came at the end?"], ["It was a <parent>.", "The mother was a <parent>."])
    s.who_facts("helped <B.full>", "helped <B.full>", "A")
    s.say('"Thank you, {kind|dear} {friend|<A.k>}," said the mother{| with tears in her eyes}.',
          "The mother {hugged|kissed} <B.n> and thanked <A.n> {again and again|with all her heart}.")
    s.ending(False, s.rng.choice(["happy", "glad", "proud"]))
    s.asks += ["a lost <baby>", "a <A.k> who helps a <baby>", "a <baby>", "a <A.k> and a <baby>", "a mother"]


def race(s):
    s.cast("A"); s.cast("B"); s.pick_weather(["sunny", "windy", "cloudy"]); s.pick_place(only=["hill", "meadow", "beach", "forest", "farm"])
    goal = s.rng.choice(["the big stone", "the old oak tree", "the bridge", "the fence", "the well"])
    prize = s.rng.choice(["a golden leaf", "a honey cake", "a red ribbon", "a big pumpkin", "a silver cup"])
    s.ctx.update(goal=goal, prize=prize)
    s.opening(s.rng.choice(["morning", "afternoon"]))
    s.meet()
    s.say('"Let us have a race," said <B.n>. "The first one to reach <goal> wins <prize>."',
          '"I can run {faster than you|like the wind}," said <A.n>. "{Then let us race to <goal>}," said <B.n>.',
          "They {decided|wanted} to race to <goal>. The winner would get <prize>.")
    if prize in s.parts[-1]:
        s.fact(["What was the prize?"], ["The prize was <prize>."])
        pz = True
    else:
        pz = False
    s.fact(["Where did the race end?", "Where did they race to?"], ["They raced to <goal>."])
    s.say('"One, two, three, go!" {And off they went|They ran}.', "Ready, steady, go! Off they {went|ran}.",
          "They {counted to three|stood side by side} and began to run.")
    s.say("At first, <A.n> was {ahead|in front}.", "<A.n> ran {fast|like the wind}, and <B.n> was close behind.",
          "{Side by side|Shoulder to shoulder}, they ran through the " + ("sand." if s.ctx["place"] == "beach" else "grass."))
    s.new_par(0.25)
    kind_ = s.rng.random()
    if kind_ < 0.55:
        s.say("{Then|But then} <B.n> {fell over a stone|slipped and fell|hurt a foot}.",
              "{Suddenly|All at once} there was a cry. <B.n> had fallen!")
        s.fact(["Who fell?", "What happened to <B.full>?"], ["<B.full> fell."])
        s.say("<A.n> could {win now|run on and win}. But <A.h> {stopped and turned around|went back}.",
              "<A.n> {did not run on|stopped at once} and {turned|went} back to help.")
        s.say('"Are you {hurt|all right}?" asked <A.n>. "{Come|Hold on to me}, we will go together."',
              '"Lean on me," said <A.n>.')
        s.who_facts("helped <B.full>", "helped <B.full>", "A")
        s.say("{Slowly|Step by step}, they {walked|went} to <goal> together.", "And so they reached <goal> side by side.")
        s.say('"We {both|have both} won," said <B.n>. "{A friend is the best prize}."',
              "Nobody {won|came first}, and nobody minded.")
        s.fact(["Who won the race?"], ["They reached <goal> together.", "Both of them reached <goal> together."])
    else:
        win = s.rng.choice("AB"); lose = "B" if win == "A" else "A"
        s.ctx["n"] = ""
        s.say(f"{{Near the end|At the end}}, <{win}.n> {{ran a little faster|took one great jump}} and {{won|reached <goal> first}}.",
              f"It was close, but <{win}.n> {{came first|won}}.")
        s.fact(["Who won the race?", "Who was faster?"], [f"<{win}.full> won the race.", f"<{win}.full> won."])
        s.say(f'"Well done!" said <{lose}.n>. "{{You are really fast|That was a good race}}."',
              f"<{lose}.n> was {{not angry|not sad}}. \"{{Well done|Good race}}!\" said <{lose}.h>.")
        if pz:
            s.say(f"<{win}.n> {{smiled and shared the prize|shared the prize with <{lose}.n>}}.",
                  f'"{{Let us share the prize|The prize is for both of us}}," said <{win}.n>.')
    s.ending(True, s.rng.choice(["happy", "glad"]))
    s.asks += ["a race", "a <A.k> and a <B.k> who have a race", "a race between a <A.k> and a <B.k>", "a fast <A.k>", "a <A.k> and a <B.k>"]


def learn_skill(s):
    skill, ving, kinds, tip = s.rng.choice([
        ("swim", "swimming", SWIMMERS, "Kick with your feet and breathe slowly"),
        ("dance", "dancing", None, "Listen to the music and do not think too much"),
        ("sing", "singing", None, "Breathe deeply and sing from the heart"),
        ("read", "reading", ["owl", "mouse", "turtle", "badger", "cat"], "Take one word at a time"),
        ("climb", "climbing", ["squirrel", "cat", "goat", "bear"], "Look up and not down"),
        ("whistle", "whistling", None, "Make your mouth round and blow softly"),
        ("paint", "painting", None, "Look closely and use many colours"),
        ("play the drum", "playing the drum", None, "Count to four and keep the beat"),
        ("bake bread", "baking", ["hen", "mouse", "badger", "bear"], "Use warm water and be patient"),
        ("skate", "skating", None, "Bend your knees and do not look at your feet")])
    s.ctx.update(skill=skill, ving=ving, tip=tip)
    no = {"swim": SWIMMERS, "climb": CLIMBERS + ["goat", "bear"], "sing": ["crow"]}.get(skill, [])
    s.cast("A", avoid=no + (kinds or [])); s.cast("B", kinds=kinds, adj=s.rng.choice(["old", "kind", "patient", "wise", "friendly"]))
    s.pick_weather(["snowy"] if skill == "skate" else ["sunny", "cloudy"] if skill == "swim" else None)
    s.pick_place(only={"swim": ["river", "lake"], "climb": ["forest", "garden"], "skate": ["lake"]}.get(skill))
    s.say("<A.i> wanted to <skill>, but {did not know how|could not do it}.",
          "More than anything, <A.i> wanted to {learn to <skill>|<skill>}.",
          '"I {wish I could|want to learn to} <skill>," said <A.i> one <wadj> day.',
          "Everyone {seemed to know how to <skill>|could <skill>}, but not <A.i>.")
    s.fact(["What did <A.full> want to learn?", "What did <A.full> want to do?"], ["<A.full> wanted to learn to <skill>.", "<A.full> wanted to <skill>."])
    if s.who["A"].name:
        a = s.who["A"]
        s.fact([f"What was the {a.kind}'s name?"], [f"The {a.kind}'s name was {a.name}."])
    s.maybe(0.5, "<A> tried {alone|in secret}, but it {went wrong|did not work}.", '"{I am too small}," <A> {thought|said}.' if s.who["A"].kind not in ("bear", "deer", "goat") else "\"I will never learn it,\" <A> thought.")
    s.say("One day, <A.n> went <placeto> and {met|saw} <B.i>.", "<placein> <A.n> met <B.i>, who {was very good at <ving>|could <skill> very well}.",
          "Then <A.n> {heard about|went to} <B.i>, who could <skill> {well|better than anyone}.")
    s.say('"{Will you teach me|Can you teach me to <skill>}?" asked <A.n>. "{Gladly|Of course}," said <B.n>.',
          '"I can {teach|show} you," said <B.n>. "{It is not so hard|We will start now}."')
    s.fact(["Who taught <A.full>?", "Who helped <A.full>?", "Who taught <A.full> to <skill>?"], ["<B.full> taught <A.full> to <skill>.", "It was <B.full>."])
    s.new_par(0.25)
    s.say('"<tip>," said <B.n>.', '"{Listen|Remember}: ' + tip[0].lower() + tip[1:] + '," said <B.n>.')
    s.fact(["What did <B.full> say?", "What was the advice of <B.full>?"], ['<B.full> said, "<tip>."'])
    s.say("The first try {went wrong|was not good}. {The second|The next one} was {a little better|not much better}.",
          "At first <A.n> {made many mistakes|was very bad at it}{, and they both laughed|}.",
          "It was {hard|not easy}. {Again and again|Many times} <A.n> {had to start over|wanted to stop}.")
    s.maybe(0.6, '"I {cannot do it|give up}," said <A.n>. "Not yet," said <B.n>, "but {soon you will|you are learning}."',
            '"Everybody {starts small|falls sometimes|makes mistakes}," said <B.n>. "{Try again|Do not give up}."')
    s.say("Day after day, they {practised|tried again}.", "So <A.n> {practised every day|tried again, and again, and again}.",
          "They practised {every morning|until evening|for a whole week}.")
    s.say("{And then|Then one day|At last}, it worked! <A.n> could <skill>{ all alone|}!",
          "{One day|At last}, <A.n> {could <skill>|found that it was easy}.")
    s.maybe(0.7, '"{Look|See}! I can do it!" {cried|laughed} <A.n>.', '"{Well done|I knew you could do it}!" said <B.n>.')
    s.ending(s.rng.random() < .5, "proud")
    s.asks += ["a <A.k> who learns to <skill>", "a <A.k> who wants to <skill>", "learning to <skill>", "a <A.k> and a <B.k>", "not giving up"]


def night_sky(s):
    s.cast("A"); s.cast("B"); s.pick_place(only=["hill", "meadow", "lake", "beach", "garden"])
    wish = s.rng.choice(["a friend", "a warm home for everyone", "a good dream", "a big adventure", "a happy day for everyone"])
    n = s.rng.choice(["ten", "twenty", "a hundred"])
    s.ctx.update(wish=wish, n=n, time="night"); s.weather = None
    s.say("The moon was {round|full} and {bright|white} that night.", "It was a clear night, and the {sky|whole sky} was full of stars.",
          "{Night|Evening} had come, and one by one the stars came out.", "All was quiet. The moon {hung over the trees|shone on the roofs}.")
    s.fact(["When does the story happen?", "Was it day or night?"], ["It was night.", "The story happens at night."])
    s.say("<A.i> {could not sleep|was still awake}, {so <A.h> went|and went} <placeto>.", "<A.i> sat <placein> and looked up at the sky.",
          "<placein> lay <A.i>, looking up.")
    s.say('"How many stars are there?" <A> {asked|wondered}, and began to count. "One, two, three..."',
          "<A> {tried to count the stars|began to count the stars}, but there were too many.",
          "<A> {looked for|found} the {biggest|brightest} star and {smiled|said hello}.")
    s.say("{Soon|After a while} <B.i> came and {sat down beside <A.m>|sat down, too}.", "\"{May I sit here|Can I look with you}?\" asked <B.i>.")
    s.fact(["Who came to <A.full>?", "Who sat down with <A.full>?"], ["It was <B.full>.", "<B.full> sat down with <A.full>."])
    s.new_par(0.2)
    s.say('"What are you doing?" asked <B.n>. "I am {counting|looking at} the stars," said <A.n>.',
          '"The sky is {so big tonight|very clear tonight}," said <B.n>.', "For a while, {they said nothing|neither of them spoke}.")
    s.say("{Suddenly|All at once}, a star fell {across the sky|from the sky}.", "Then a {falling star|bright star} flew across the sky.")
    s.say('"{Quick|Look}! Make a wish!" said <B.n>.', '"Did you see that?" said <B.n>. "Now you must make a wish."')
    s.say("<A.n> closed <A.r> eyes and wished for <wish>.", "<A.n> wished for <wish>.")
    s.fact(["What did <A.full> wish for?", "What was the wish?"], ["<A.full> wished for <wish>."])
    if wish == "a friend":
        s.say('"What did you wish for?" asked <B.n>. "I think it has come true already," said <A.n>, and {smiled|looked at <B.n>}.')
    else:
        s.maybe(0.7, '"I hope it comes true," said <B.n>.', '"I wished for {something|the same thing}, too," said <B.n>.')
    s.say("They counted <n> stars together, and then {their eyes grew heavy|they were both sleepy}.",
          "They {talked in soft voices|sat close together} until {the moon was high|they were sleepy}.")
    s.ctx["feel"] = s.rng.choice(["calm", "happy"])
    s.fact(["How did <A.full> feel?"], ["<A.full> felt <feel>."])
    s.say("<A.n> went home, felt <feel>, and {slept deeply|fell asleep at once}.", "\"Good night{|, moon|, stars},\" {whispered|said} <A.n>, who felt <feel>, and {soon was asleep|went to bed}.")
    s.asks += ["the stars", "a <A.k> and the moon", "a falling star", "a wish", "a <A.k> who cannot sleep", "the moon"]
    s.tags.add("bed")
