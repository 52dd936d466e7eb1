"""Plots: quarrels, new friends, markets, evenings and music."""
from .world import FLYERS, SWIMMERS


def quarrel(s):
    s.cast("A"); s.cast("B"); s.pick_obj(only=["kite", "ball", "boat", "book", "drum", "umbrella", "hat", "bucket", "blanket", "flute"])
    s.pick_weather(["sunny", "windy", "cloudy"]); s.pick_place()
    s.say("<A.i> and <B.i> were {good friends|neighbours|playing <placein>}.", "{Every day|Every afternoon} <A.i> and <B.i> played <placein>.",
          "One <wadj> {day|morning}, <A.i> and <B.i> were playing <placein>.")
    if s.ctx["wadj"] in s.parts[-1]:
        s.weather_fact()
    s.say("{Today|One day}, they found a <objcol> <obj> <placespot>." if "One" not in s.parts[-1] else "They found a <objcol> <obj> <placespot>.")
    s.fact(["What did they find?", "What did they both want?"], ["They found a <objcol> <obj>.", "It was a <objcol> <obj>."])
    s.fact(["Where was the <obj>?"], ["The <obj> was <placespot>."])
    s.fact(["What colour was the <obj>?", "What color was the <obj>?"], ["The <obj> was <objcol>."])
    s.say('"It is mine!" {said|cried} <A.n>. "No, {it is mine|I saw it first}!" {said|cried} <B.n>.', 'Both of them wanted it. "Mine!" cried <A.n>. "No, mine!" cried <B.n>.')
    s.say("They {pulled and pulled|shouted and pulled}, until {both fell down|they were red in the face}.", "They were so {angry|cross} that they {would not look at each other|turned away}.",
          "<A.n> {went|walked} one way and <B.n> {went|walked} the other.")
    s.new_par(0.4)
    s.say("{But soon|After a while}, <A.n> {felt sad|was lonely}. {What good is a <obj> without a friend?|It is no fun to play alone.}",
          "<A.n> sat {alone|under a tree} and thought. A friend is worth more than a <obj>.")
    s.say("<A.n> went to <B.n>. \"I am sorry,\" <A.h> said. \"{You can have it|Let us share it}.\"", '"I am sorry," <A.n> {said|whispered}. "{I do not want to fight|Please be my friend again}."')
    s.fact(["Who said sorry?", "Who said sorry first?"], ["<A.full> said sorry.", "It was <A.full>."])
    s.say('"I am sorry, too," said <B.n>.', "<B.n> {smiled|looked up}. \"I am sorry, too. {Let us take turns|We can share it}.\"")
    s.say("So they {took turns|shared it}. {Then|In the end} they " + s.ctx["objuse"] + ".", "And so they " + s.ctx["objuse"] + ", {side by side|together}.")
    s.ending(False, s.rng.choice(["happy", "glad"]))
    s.maybe(0.5, "{Sharing makes everything better|A toy is small, but a friendship is big|It is always good to say sorry}.")
    s.asks += ["two friends who fight", "saying sorry", "sharing a <obj>", "a <A.k> and a <B.k>", "a <A.k> and a <obj>", "two friends"]


def new_friend(s):
    s.cast("A", adj=s.rng.choice(["shy", "quiet", "little", "young"])); s.cast("B", adj=s.rng.choice(["friendly", "cheerful", "kind", "curious"]))
    s.pick_weather(); s.pick_place(only=["village", "forest", "farm", "meadow", "river", "lake", "hill"])
    game = s.rng.choice(["hide and seek", "catch", "a word game", "jumping over puddles", "pirates"] if s.weather == "rainy" else
                        ["hide and seek", "catch", "a word game", "pirates"])
    s.ctx["game"] = game
    s.say("<A.i> was new <placein> and {did not know anybody|had no friends yet}.", "<A.i> had just {moved|come} to live <placein>, and {felt lonely|knew nobody there}.",
          "Nobody {talked to|played with} <A.i>, who was new <placein>.")
    s.fact(["Who was new <placein>?", "Who was lonely?"], ["<A.full> was new <placein>." , "It was <A.full>."])
    if s.rng.random() < .5:
        s.weather_line()
    s.say("<A> {sat by the window|sat on a stone|stayed alone} and watched the others play.", "Every day <A> {sat alone|ate alone|walked alone}.",
          "<A> wanted to say hello, but {was too shy|the words would not come out}.")
    s.notice(.3)
    s.new_par(.25)
    s.say("{One day|Then}, <B.i> {came over|stopped} and said, \"{Hello|Hi}! {What is your name|Do you want to play}?\"",
          "{One day|Then}, a ball rolled to <A.s> feet. \"{Hello|Hi}!\" called <B.i>. \"{Can you throw it back|Do you want to play}?\"")
    s.who_facts("came to <A.full>", "came to <A.full>")
    s.fact(["Who spoke to <A.full>?"], ["It was <B.full>.", "<B.full> spoke to <A.full>."])
    nm = s.who["A"].name
    s.say(f'"I am {nm or "new here"}," said <A.n>{{ softly| in a small voice}}.', "<A.n> {looked at the ground|turned red}, but then <A.h> {smiled|nodded}.")
    s.say('"{Come with me|Come}," said <B.n>. "{I will show you everything|Let me show you my favourite place}."', '"I was new here once, too," said <B.n>. "{Come, let us play|Let us be friends}."')
    s.say("They played <game> {all day|until the sun went down|for hours}.", "First they played <game>. Then they {shared some bread|ate some berries|told each other jokes}.")
    s.fact(["What did they play?", "What game did they play?"], ["They played <game>."])
    s.maybe(.6, '"{Will you come back tomorrow|Shall we play again tomorrow}?" asked <B.n>. "Oh yes," said <A.n>.',
            "<B.n> {laughed|smiled}. \"{Now you have a friend|Now you are not alone any more}.\"")
    s.ending(True, s.rng.choice(["happy", "glad"]))
    s.asks += ["a shy <A.k>", "a new friend", "a lonely <A.k>", "making friends", "a <A.k> and a <B.k>", "a <A.k> who is new <placein>"]


def rescue(s):
    s.cast("A"); s.cast("B")
    how, where, tool = s.rng.choice([("stuck in the mud", "by the river", "a long rope"), ("stuck in a hole", "in the forest", "a ladder"),
                                     ("stuck in a thorn bush", "in the garden", "a pair of scissors"), ("on a small island in the lake", "by the lake", "a little boat"),
                                     ("stuck between two rocks", "on the hill", "a strong stick"), ("up in a tree and afraid to come down", "in the meadow", "a ladder")])
    if "tree" in how:
        s.who.pop("B"); s.cast("B", kinds=["cat", "bear", "mouse", "goat", "squirrel"])
    if "lake" in how or "mud" in how:
        if s.who["B"].kind in SWIMMERS + FLYERS:
            s.who.pop("B"); s.cast("B", kinds=["cat", "mouse", "hedgehog", "sheep", "pig", "goat"])
    if s.who["B"].kind in FLYERS + ["bear"] and "tree" not in how:
        s.who.pop("B"); s.cast("B", kinds=["fox", "mouse", "hedgehog", "sheep", "pig", "rabbit"])
    s.ctx.update(how=how, tool=tool); s.pick_weather(["rainy", "cloudy", "sunny", "foggy"])
    pl = {"by the river": "river", "in the forest": "forest", "in the garden": "garden", "by the lake": "lake", "on the hill": "hill", "in the meadow": "meadow"}[where]
    s.pick_place(only=[pl]); s.opening(s.rng.choice(["morning", "afternoon"]))
    s.say('"Help! Help!" {cried someone|called a voice}.', "{Suddenly|All at once} there was a {loud|small} cry. \"Help!\"", '"Is anybody there?" called a {weak|small} voice.')
    s.say("<A.n> {ran|hurried} {closer|to see}. <B.i> was <how>.", "It was <B.i>, who was <how>.")
    s.fact(["Who called for help?", "Who needed help?"], ["<B.full> called for help.", "It was <B.full>."])
    s.fact(["Where was <B.full>?", "What was the problem?", "What happened to <B.full>?"], ["<B.full> was <how>."])
    s.say('"{I have been here for hours|Please help me}," said <B.n>.', "<B.n> was {very tired|cold and tired|close to tears}.",
          *(['"I cannot {get out|move}," said <B.n>.'] if "stuck" in how else []))
    s.new_par(.3)
    s.say('"{Stay calm|Do not move|Hold on}," said <A.n>. "{I will be right back|I have an idea}."', "<A.n> {thought hard|thought for a moment}. Then <A.h> had an idea.")
    s.say("<A> {ran home|ran to the farm} and came back with <tool>.", "<A> looked around and {found|saw} <tool>.")
    s.fact(["What did <A.full> use?", "What did <A.full> bring?"], ["<A.full> used <tool>."])
    act = {"a long rope": "<A.n> {pulled|pulled and pulled}, and slowly <B.n> came out of the mud.",
           "a ladder": "{Step by step|Slowly}, <B.n> climbed " + ("down." if "tree" in how else "out."),
           "a pair of scissors": "Snip, snip! <A.n> cut the {thorns|branches}, and <B.n> was free.",
           "a little boat": "<A.n> rowed to the island and brought <B.n> back to the bank.",
           "a strong stick": "<A.n> pushed with the stick, the rock moved, and <B.n> was free."}[tool]
    s.say(act)
    s.who_facts("helped <B.full>", "helped <B.full>", "A"); s.fact(["Who saved <B.full>?"], ["<A.full> saved <B.full>.", "It was <A.full>."])
    s.say('"You {saved|rescued} me!" said <B.n>. "{How can I thank you?|Thank you with all my heart.}"',
          "<B.n> {thanked} <A.n> {for a long time|again and again}.")
    s.maybe(.7, '"{Anyone would do that|That is what friends are for}," said <A.n>.', "That evening, <B.n> {cooked|made} {a big dinner|a pot of soup|pancakes} for <A.n>.")
    s.ending(True, s.rng.choice(["happy", "proud", "glad"]))
    s.asks += ["a <A.k> who saves a <B.k>", "a <B.k> who needs help", "a brave <A.k>", "a <A.k> and a <B.k>", "helping others"]


def market(s):
    s.cast("A"); s.cast("B", adj=s.rng.choice(["old", "poor", "tired", "hungry"])); s.pick_weather(["sunny", "cloudy", "windy"])
    s.pick_place(only=["village"]); o = s.pick_obj(only=["hat", "scarf", "lantern", "drum", "flute", "ball", "book", "kite"])
    give = s.rng.choice(["a loaf of bread", "a bowl of soup", "a warm bun", "a bag of apples"])
    s.ctx["give"] = give
    s.say("It was market day in the village.", "Every Saturday, there was a market in the village.", "The market was full of {colours|people} and {good smells|loud voices}.")
    s.fact(["Where did the story happen?", "Where did <A.full> go?"], ["It happened at the market.", "The story took place at the market in the village."])
    s.say("<A.i> had {one coin|two coins|three coins} and wanted to buy a <objcol> <obj>.", "With {one coin|a few coins} in a small bag, <A.i> went to buy a <objcol> <obj>.")
    s.fact(["What did <A.full> want to buy?"], ["<A.full> wanted to buy a <objcol> <obj>."])
    s.fact(["What colour was the <obj>?"], ["The <obj> was <objcol>."])
    s.maybe(.7, "There were {apples|plums|pears} and {cheese|bread|honey}, {toys and hats|pots and pans|ribbons and bells}.", "<A> had saved {for weeks|all summer} for it.", "<A> walked past {the bread|the flowers|the cheese} without stopping.")
    if s.rng.random() < .3:
        s.weather_line()
    s.new_par(.25)
    s.say("Near the well sat <B.i>, who {had nothing to eat|looked hungry|was very hungry}.", "Then <A.n> saw <B.i>, who {sat alone near the well|had not eaten all day}.")
    s.say("<A.n> looked at the <obj>. Then <A.h> looked at <B.n>.", '"Are you hungry?" asked <A.n>. "Yes{, a little|, very|}," said <B.n>.')
    s.say("<A.n> did not buy the <obj>. Instead, <A.h> bought <give> for <B.n>.", "So <A.n> {used the money to buy|bought} <give> and gave it to <B.n>.")
    s.fact(["What did <A.full> buy?", "What did <A.full> give to <B.full>?"], ["<A.full> bought <give> for <B.full>."])
    s.fact(["Who was hungry?"], ["<B.full> was hungry."])
    s.say('"{Nobody has been so kind to me|You have a good heart}," said <B.n>.', "<B.n> {ate every bit|ate slowly} and smiled. \"{You are kind|Thank you, dear friend}.\"")
    if s.rng.random() < .6:
        s.say('The woman who sold the <obj> had seen {it all|everything}. "Here," she said, "the <obj> is yours, as a gift."',
              "A week later, a {box|parcel} {stood|lay} at <A.s> door. Inside was the <objcol> <obj>, and a note: \"Thank you.\"")
        s.fact(["Did <A.full> get the <obj> in the end?"], ["Yes, <A.full> got the <obj> as a gift.", "Yes, it was a gift."])
    s.ending(False, s.rng.choice(["happy", "glad"]))
    s.asks += ["a market", "a <A.k> who goes to the market", "a <A.k> with a coin", "being kind", "a <A.k> and a <obj>"]


def good_night(s):
    s.cast("A", adj=s.rng.choice(["sleepy", "little", "small"]), child=.4); s.weather = None; s.pick_place(only=["garden", "forest", "farm", "meadow"])
    s.cast("B", adj="old")
    toy = s.rng.choice(["a soft blanket", "a small lamp", "a cup of warm milk", "an old song", "a little toy bear"])
    s.ctx.update(toy=toy, time="night")
    s.say("{The day was over|The sun had gone down}, and it was time to sleep.", "It was late, and the {sky|world} was {dark blue|quiet}.", "{Slowly|Softly}, the night came over the hills.")
    s.say("But <A.i> was not {tired|sleepy} at all.", "<A.i> lay in bed, but could not {sleep|close both eyes}.")
    s.fact(["Who could not sleep?"], ["<A.full> could not sleep.", "It was <A.full>."])
    s.say('"{I am not tired|I cannot sleep}," {said|called} <A.n>.', "<A.n> turned to the left. <A.n> turned to the right. {It was no use|Nothing helped}.")
    s.say("<B.i> came in {quietly|on soft feet} with <toy>.", "Then <B.i> came {to the bed|in} and brought <toy>." if toy != "an old song" else "Then <B.i> came in and sang an old song.") if toy != "an old song" else s.say("<B.i> {came in|sat down} and sang an old song.")
    s.fact(["Who came to <A.full>?"], ["<B.full> came to <A.full>.", "It was <B.full>."])
    s.fact(["What did <B.full> bring?"], ["<B.full> brought <toy>."]) if toy != "an old song" else s.fact(["What did <B.full> sing?"], ["<B.full> sang an old song."])
    s.say('"Everyone is going to sleep," said <B.n>. "{Listen|Let us say good night to them}."')
    things = s.rng.sample([("bees", "in their hive"), ("birds", "in their nests"), ("flowers", "with closed petals"), ("fish", "at the bottom of the pond"), ("sheep", "close together"),
                           ("clouds", "above the hills"), ("boats", "on the quiet water"), ("ducks", "in the reeds"), ("squirrels", "in their tree")], 3)
    s.new_par(.4)
    pat = s.rng.randrange(3)
    if pat == 0:
        s.say(" ".join(f"The {a} {s.rng.choice(['sleep', 'are asleep'])} {b}." for a, b in things))
    elif pat == 1:
        s.say(" ".join(f'"Good night, {a},"' + (" said <A.n>." if i == 0 else " said <B.n>." if i == 1 else " they said together.") + f" The {a} slept {b}." for i, (a, b) in enumerate(things)))
    else:
        s.say(f"The {things[0][0]} were asleep {things[0][1]}, the {things[1][0]} were asleep {things[1][1]}, and the {things[2][0]} slept {things[2][1]}.")
    s.say('"And the moon?" asked <A.n>. "The moon {stays awake|watches over us all}," said <B.n>.', "{Outside|Above the roof}, the moon {smiled|shone} {softly|down}.", '"And you?" asked <A.n>. "I will sleep, too," said <B.n>, "when you do."')
    s.say("<A.n> {yawned|closed both eyes}. {One breath, two breaths|One minute, two minutes}, and <A.h> was asleep.", "<A.n> wanted to say one more thing, but {was already asleep|sleep came first}.")
    s.ctx["feel"] = "calm"
    s.maybe(.7, '"Sweet dreams," {whispered|said} <B.n>{|, and closed the door}.', "And all night, the stars {kept watch|shone}.")
    s.asks += ["a sleepy <A.k>", "a <A.k> who cannot sleep", "a good night", "going to sleep", "the moon"]
    s.tags.add("bed")


def music(s):
    s.cast("A"); s.cast("B"); s.cast("C", child=.2)
    ins = s.rng.sample(["flute", "drum", "bell", "violin", "horn", "guitar"], 3)
    s.ctx.update(i1=ins[0], i2=ins[1], i3=ins[2]); s.pick_weather(["sunny", "cloudy", "snowy"]); s.pick_place(only=["village", "forest", "farm", "meadow", "hill"])
    s.opening(s.rng.choice(["afternoon", "morning"]))
    s.say("<A> played the <i1>{, but it sounded lonely| all alone}.", "<A> {sat down|stood still} and began to play the <i1>.")
    s.fact(["What did <A.full> play?"], ["<A.full> played the <i1>."])
    s.say("<B.i> heard {the music|it} and came with a <i2>.", "{Soon|Then} <B.i> came along with a <i2>. \"{May|Can} I play with you?\"")
    s.fact(["What did <B.full> play?", "Who played the <i2>?"], ["<B.full> played the <i2>."])
    s.maybe(.5, "Now {the music sounded better|there were two of them}.", '"{Yes, please|Gladly}," said <A.n>. "{Two sound better than one|Sit down}."')
    s.say("Then {came <C.i>, who had|they met <C.i>, who had} a <i3>.", "After them came <C.i>, who carried a <i3>.")
    s.fact(["Who had the <i3>?", "Who played the <i3>?"], ["<C.full> had the <i3>." , "It was <C.full>."])
    s.new_par(.3)
    s.say("At first, everyone played {too loud|something different}, and it sounded {terrible|awful}.", "The first song was {a mess|not very good}, and they laughed.")
    s.say('"{We must listen to each other|Let us count together}," said <B.n>. "{One, two, three|Slowly now}."', '"{Softly|Listen first, then play}," said <C.n>.')
    s.say("{Now|Then} the <i1>, the <i2>, and the <i3> {sounded like one|played together}.", "And {suddenly|then} there was a song. It was {simple|slow} and {sweet|beautiful}.")
    s.say("{Everyone|All the animals|The neighbours} {came to listen|danced|opened their windows}.", "Even the {birds|wind} stopped to listen.")
    s.fact(["How many friends played music?", "How many were they?"], ["There were three of them.", "Three friends played together."])
    s.ending(False, s.rng.choice(["happy", "proud"]))
    s.asks += ["music", "a <A.k> who plays the <i1>", "a song", "three friends", "a <i1>"]
