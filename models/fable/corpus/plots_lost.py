"""Plots: things lost, found, reached for and shared."""
from .world import CLIMBERS, FLYERS, SPECIES, WIND_TAKES


def lost_found(s):
    s.cast("A"); s.cast("B"); o = s.pick_obj()
    s.pick_weather(); s.pick_place()
    if o in WIND_TAKES and s.rng.random() < 0.4:
        s.pick_weather(["windy"])
    s.opening(s.rng.choice(["morning", "afternoon"]))
    gift = s.rng.choice(["grandmother", "grandfather", "mother", "father", "aunt", "uncle", "sister", "brother"])
    s.ctx["gift"] = gift
    if s.rng.random() < 0.6:
        s.say("<A> had a <objcol> <obj>{, and <A.h> took it everywhere|, and <A.h> loved it very much|}.",
              "The thing <A> loved most was a <objcol> <obj>.",
              "<A> always carried a <objcol> <obj>.")
        if s.rng.random() < 0.5:
            s.say("It was a {gift|present} from <A.r> <gift>." if s.prev_subject == "A" else "It was a {gift|present}.")
            if "from" in s.parts[-1]:
                s.fact(["Who gave the <obj> to <A.full>?"], ["<A.full> got the <obj> from <A.r> <gift>.",
                                                           "It was a gift from <A.r> <gift>."])
    else:
        s.say("<A> had lost something: a <objcol> <obj>{ that was a gift from <A.r> <gift>|}.",
              "<A> was looking for a <objcol> <obj>{| that <A.h> had lost}.")
    s.fact(["What colour was the <obj>?", "What color was the <obj>?"],
           ["The <obj> was <objcol>.", "It was <objcol>."])
    s.fact(["What did <A.full> lose?", "What was lost?"], ["<A.full> lost a <objcol> <obj>.", "It was the <objcol> <obj>."])
    s.new_par(0.3)
    if o in WIND_TAKES and s.weather == "windy":
        s.say("{Suddenly|All at once} the wind took the <obj> and {carried it away|blew it away}.",
              "A gust of wind pulled the <obj> away, and {soon|in a moment} it was gone.")
    else:
        s.say("But {today|now} the <obj> was {gone|nowhere to be seen|missing}.",
              "{But|Then} <A.h> looked around, and the <obj> was {gone|not there}." if s.prev_subject == "A" else "But the <obj> was gone.",
              "{Somewhere on the way|Along the way}, the <obj> had {fallen to the ground|slipped away}.")
    s.maybe(0.6, '"Oh no!" {said|cried} <A>. "Where is my <obj>?"',
            '"{Where can it be|Where is my <obj>}?" <A> {asked|said|wondered}.',
            "<A> {was very sad|felt sad|wanted to cry}.")
    s.say("<A> looked {here and there|high and low|everywhere}, but {found nothing|could not find it|it was not there}.",
          "First <A> looked {behind a tree|under a leaf|behind a stone}. Then <A.h> looked {back along the path|in every bag|all around}. {Nothing|It was not there}.",
          "<A> looked and looked{, but there was no <obj>|, without any luck}.")
    s.notice(0.2)
    s.new_par(0.3)
    s.meet()
    s.say('"{What is wrong|Why do you look so sad|What are you looking for}, <A.v>?" {asked|said} <B>.',
          '"You look {sad|worried}," said <B>. "{What is wrong|What happened}?"',
          '"Can I help you?" asked <B>.')
    s.say('"I {have lost|lost|cannot find} my <obj>," {said|answered} <A.n>{| sadly}.',
          '"My <obj> is gone," said <A.n>{| in a small voice}.',
          "<A.n> told <B.n> about the <obj>.")
    s.say('"{Do not worry|Do not be sad}," said <B>. "{We will find it|I will help you|Let us look together}."',
          '"{Two pairs of eyes are better than one|Two can look better than one}," said <B>.',
          '"Then let us look for it together," said <B>.')
    finder = "B" if s.rng.random() < 0.7 else "A"
    s.say(("<B> looked <placespot>" if finder == "B" else "<A> looked <placespot>") +
          ", and {there it was|there was the <obj>|there lay the <obj>}{!|.}",
          ("It was <B.n> who found the <obj>" if finder == "B" else "At last <A.n> found the <obj>") + ". It {was|lay} <placespot>.",
          ("{Soon|After some time|At last} <B.n> found it <placespot>." if finder == "B" else
           "{Soon|After some time|At last} <A.n> saw something <objcol> <placespot>. It was the <obj>!"))
    s.fact(["Who found the <obj>?"], [f"<{finder}.full> found the <obj>.", f"<{finder}.full> found it."])
    s.fact(["Where was the <obj>?", "Where did they find the <obj>?"],
           ["The <obj> was <placespot>.", "They found it <placespot>."])
    s.who_facts("helped <A.full>", "helped <A.full>")
    s.maybe(0.7, '"Thank you, <B.v>!" {said|cried} <A.n>{| with a big smile}.',
            '"You are a {true|good} friend," said <A.n>.',
            "<A.n> {jumped for joy|laughed with joy|gave <B.n> a big hug}.")
    s.maybe(0.7, "{Then|After that|Together}, {they|the two of them|the two friends} " + s.ctx["objuse"] + ".")
    s.ending(True)
    s.asks += ["a <A.k> and a <obj>", "a <A.k> who lost a <obj>", "a lost <obj>", "a <A.k> and a <B.k>",
               "a <objcol> <obj>"]


def found_owner(s):
    s.cast("A"); s.cast("B"); s.pick_obj(avoid=("shell", "feather"))
    s.pick_weather(); s.pick_place()
    s.opening(s.rng.choice(["morning", "afternoon"]))
    s.say("{There|Suddenly}, <placespot>, <A> {saw|found} a <objcol> <obj>.",
          "<A> {saw something <objcol>|noticed something} <placespot>. It was a <obj>{!|.}" if s.rng.random() < .5 else
          "<placespot> lay a <objcol> <obj>, and <A.n> picked it up.",
          "As <A> walked along, <A.h> found a <objcol> <obj> <placespot>.")
    s.fact(["Who found the <obj>?"], ["<A.full> found the <obj>.", "<A.full> found it."])
    s.fact(["Where was the <obj>?", "Where did <A.full> find the <obj>?"],
           ["The <obj> was <placespot>.", "<A.full> found it <placespot>."])
    if s.ctx["objcol"] in s.parts[-1]:
        s.fact(["What colour was the <obj>?", "What color was the <obj>?"], ["The <obj> was <objcol>.", "It was <objcol>."])
    s.fact(["What did <A.full> find?"], ["<A.full> found a <obj>."])
    s.maybe(0.6, '"{What a nice|What a fine|What a pretty} <obj>," said <A.n>. "{Whose is it|Who has lost it}?"',
            "It was {old but pretty|shiny and new|very beautiful}.",
            "<A> {turned it over|held it up} and looked at it with {wide|big} eyes.")
    s.say("<A> wanted to keep it, but <A.h> knew that {someone must miss it|somebody was looking for it|it was not right}.",
          '"Somebody must be {sad|looking for it}," {thought|said} <A>.',
          "<A> {decided|wanted} to find the owner.")
    s.new_par(0.35)
    c = s.cast("C", child=0.15)
    s.say("First <A> asked <C.i>. \"Is this your <obj>?\" \"No,\" said <C.n>, \"it is not mine.\"",
          "<A> met <C.i> and asked, \"Did you lose this <obj>?\" But <C.n> {shook <C.r> head|said no}.",
          'On the way <A> met <C.i>. "It is not mine," said <C.n>.')
    s.fact(["Did the <obj> belong to <C.full>?"], ["No, it belonged to <B.full>.", "No, the <obj> belonged to <B.full>."])
    s.say("{Then|After that|A little later} <A.n> {met|saw|came to} <B.i>, who {was crying|looked very sad|was looking for something}.",
          "{Then|At last} <A.n> heard someone {crying|sigh}. It was <B.i>.",
          "Not far away sat <B.i> with a {sad|worried} face.")
    s.say('"{What is wrong|What happened|Why are you so sad}?" asked <A.n>. "I lost my <obj>," said <B.n>.',
          '"Have you lost something?" asked <A.n>. "Yes," said <B.n>, "my <obj>{| is gone}."',
          '"I {have looked everywhere|am looking} for my <obj>," said <B.n>.')
    s.say('"Here it is!" said <A.n>{, and gave it back| with a smile}.',
          "{With a smile|At once|Gently}, <A.n> gave the <obj> to <B.n>.",
          '"Is it this one?" asked <A.n>, and held up the <obj>.')
    s.say("<B.n> {jumped for joy|could not believe it|laughed and danced}. \"Thank you{|, <A.v>}!\"",
          '"My <obj>! Thank you{|, <A.v>}!" {cried|said} <B.n>.',
          "<B.n> smiled from ear to ear and thanked <A.n>{ again and again|}.")
    s.fact(["Whose <obj> was it?", "Who had lost the <obj>?", "Who did the <obj> belong to?"],
           ["The <obj> belonged to <B.full>.", "It was <B.s> <obj>." if s.who["B"].name else "It belonged to <B.full>."])
    s.maybe(0.6, "{Then|Together} the two of them " + s.ctx["objuse"] + ".",
            "To say thank you, <B.n> shared {some cake|an apple|some berries|a warm bun} with <A.n>.")
    s.ending(True)
    s.asks += ["a <A.k> who found a <obj>", "a <A.k> and a <obj>", "a <obj>", "a <A.k> who is honest",
               "a <A.k> and a <B.k>"]


def high_fruit(s):
    fruit, tree = s.rng.choice([("apple", "an apple tree"), ("pear", "a pear tree"), ("plum", "a plum tree"),
                                ("cherry", "a cherry tree"), ("peach", "a peach tree")])
    s.ctx.update(fruit=fruit, fruits={"cherry": "cherries", "peach": "peaches"}.get(fruit, fruit + "s"),
                 fcol={"apple": "red", "pear": "yellow", "plum": "purple", "cherry": "red", "peach": "orange"}[fruit])
    s.cast("A", kinds=None if s.rng.random() < .25 else [k for k in SPECIES if k not in CLIMBERS + FLYERS + ["bear", "fish"]], child=1.0)
    s.cast("B", kinds=CLIMBERS)
    s.pick_weather(["sunny", "windy", "cloudy"]); s.pick_place(only=["garden", "farm", "village", "meadow", "hill"])
    s.opening(s.rng.choice(["morning", "afternoon"]))
    s.say("<placein> stood a {tall|big|very old} <fruit> tree, full of {ripe|sweet|fat} <fruits>.",
          "There was a {tall|great|big} <fruit> tree <placein>, and its <fruits> were {ripe|<fcol> and sweet}.",
          "<A> came to a <fruit> tree. At the very top hung a {big|round|beautiful} <fcol> <fruit>.")
    s.fact(["What did <A.full> want?", "What did <A.full> want to eat?"],
           ["<A.full> wanted a <fruit>.", "<A.full> wanted to eat a <fruit>."])
    s.say("<A> was {hungry|very hungry} and wanted {just one|one}.",
          '"I would like to eat one of those <fruits>," {said|thought} <A>.',
          "How <A.n> {wished for|wanted} one of those <fruits>!")
    s.new_par(0.25)
    tries = s.rng.sample(["<A> {jumped|stretched} as high as <A.h> could, but the <fruits> were too high.",
                          "<A> shook the tree, but {nothing fell down|only a leaf fell down}.",
                          "<A> threw a {stick|small stone} at the branch, but {missed|it fell back to the ground}.",
                          "<A> stood on a {box|stone|log}, but it was not {tall|high} enough."], s.rng.choice([1, 2, 2]))
    s.say(tries[0])
    if len(tries) > 1:
        s.say("Then " + tries[1].replace("<A>", "<A.h>", 1))
    s.maybe(0.6, '"It is {too high|no use}," said <A>, and sat down.', "<A> {sighed|was about to give up}.",
            "<A> {looked up|sat in the grass} and felt {very small|sad}.")
    s.meet()
    can = "fly" if s.who["B"].kind in FLYERS else "climb"
    s.ctx["can"] = can
    s.ctx["went"] = "flew" if can == "fly" else "climbed"
    s.say('"{Why are you sad|What is the matter|What are you doing}, <A.v>?" asked <B.n>.',
          '"{Good day|Hello}, <A.v>," said <B.n>. "You look hungry."',
          "<B.n> looked at the tree and {smiled|laughed softly}.")
    s.say('"I cannot {reach|get} the <fruits>," said <A.n>.',
          '"The <fruits> are too high for me," {said|answered} <A.n>.')
    s.say('"But I can <can>," said <B.n>. "{Wait here|Let me help you}."',
          '"That is easy for me," said <B.n>, "for I can <can>."',
          '"Let me help," said <B.n>.')
    s.say("<B.n> <went> up to the {top|highest branch} and {threw down|dropped} {two|three|four} <fruits>.",
          "{Quick as the wind|In no time}, <B.n> <went> up and came back with {two|three} <fruits>.",
          "Up <went> <B.n>, higher and higher. Soon {two|three} <fruits> {fell|rolled} into the grass.")
    s.who_facts("helped <A.full>", "helped <A.full>")
    s.fact(["Who got the <fruits>?"], ["<B.full> <went> up and got the <fruits>."])
    s.fact(["What kind of tree was it?"], ["It was a <fruit> tree."])
    s.say('"Thank you!" said <A.n>. "{Let us share|Let us eat them together|One for you and one for me}."',
          "<A.n> gave the biggest <fruit> to <B.n>, and {they ate together|both of them ate and laughed}.",
          "They sat {under the tree|in the shade|in the grass} and ate {until they were full|together}.")
    if " ate" in s.parts[-1]:
        s.fact(["What did they eat?"], ["They ate <fruits>."])
    s.maybe(0.4, "The <fruits> were {sweet|sweet and juicy|the best of the whole year}.")
    s.ending(True)
    s.asks += ["a <A.k> and a <fruit> tree", "a hungry <A.k>", "a <A.k> and a <B.k>", "a <fruit>", "a tall tree"]


def storm_shelter(s):
    s.cast("A"); s.cast("B")
    kind = s.rng.choice(["rain", "snow"])
    s.pick_weather(["rainy"] if kind == "rain" else ["snowy"])
    s.ctx.update(storm=kind, drink=s.rng.choice(["tea", "soup", "milk"]),
                 story=s.rng.choice(["a story", "a funny story", "an old song", "a long story about the sea"]))
    s.ctx.update(bowl="bowl" if s.ctx["drink"] == "soup" else "cup", wet="wet" if kind == "rain" else "white with snow")
    s.pick_place()
    s.say("{One|Late one} {evening|night}, a {great|wild|cold} storm came {over|across} the land.",
          "The {storm|wind} was so loud that {evening|night} that {nobody could sleep|even the trees shook}.",
          "It was a {dark|cold} and stormy {evening|night}.",
          "The clouds were {dark|black}, and the wind {cried|howled} around the {houses|hills}.")
    s.say("The rain {fell and fell|beat against the windows|came down like a river}." if kind == "rain" else
          "Snow {fell and fell|covered every path|came down thick and fast}.")
    s.fact(["What was the weather like?", "How was the weather?"],
           ["It was a stormy night with <storm>.", "There was a storm with <storm>."])
    s.say("<A.i> sat at home {by the fire|in a warm chair} and {drank warm <drink>|listened to the wind|was glad to be inside}.",
          "In a {warm|small} {home|house}, <A.i> was {making <drink>|sitting by the fire}.",
          "<A.i> had just made a {big pot of <drink>|good fire}.")
    if s.who["A"].name:
        a = s.who["A"]
        s.fact([f"What was the {a.kind}'s name?"], [f"The {a.kind}'s name was {a.name}."])
    s.say("{Knock, knock!|Tap, tap, tap!} {Someone was at the door|There was a sound at the door}.",
          "{Suddenly|Then} there was a {soft|small} knock at the door.",
          "All at once, <A.n> heard a {weak|small} voice outside.")
    s.say("<A> opened the door, and there stood <B.i>, {wet and cold|cold and tired|shaking with cold}.",
          "<A> went to see. It was <B.i>, <wet> from head to toe.",
          "<A> went to the door. {Outside|There} in the <storm> stood <B.i>, who was {shaking|cold and tired}.")
    s.fact(["Who was at the door?", "Who came to the door?", "Who was out in the storm?"],
           ["<B.full> was at the door.", "It was <B.full>."])
    s.say('"I {lost my way|cannot find my way home|am so cold}," said <B.n>. "{May I come in|Can I stay here}?"',
          '"Please, may I come in?" asked <B.n>.',
          '"The wind {broke my roof|blew away my roof}," said <B.n>{| sadly}. "{May I stay here|Can I come in}?"')
    s.new_par(0.25)
    s.say('"{Of course|Come in, come in}!" said <A.n>. "{It is warm here|There is room for two}."',
          '"Quick, come inside!" {said|cried} <A.n>.',
          "<A.n> did not {wait|think twice}. \"{Come in|You are welcome here}{|, my friend}!\"")
    s.say("<A> gave <B.n> a {dry|soft|thick} blanket and a <bowl> of {hot|warm} <drink>.",
          "Soon <B.n> sat by the fire with a <bowl> of {hot|warm} <drink>.",
          "They sat by the fire, and <A.n> {brought|poured} some {hot|warm} <drink>.")
    s.fact(["What did <A.full> give to <B.full>?", "What did they have by the fire?"],
           ["<A.full> gave <B.full> some warm <drink>.", "It was warm <drink>."])
    s.maybe(0.7, "{To say thank you|Later}, <B.n> {told|shared} <story>." if "song" not in s.ctx["story"] else "{To say thank you|Later}, <B.n> sang <story>.",
            "They {talked and laughed|played a game|told each other stories} while the storm {went on|cried outside}.")
    s.say("{In the morning|When morning came|The next morning}, {the sun was out|the storm was gone|the sky was clear and blue}.",
          "By morning, the storm was over{, and everything was still|}.")
    s.maybe(0.6, '"I will never forget this," said <B.n>.',
            '"Thank you for the warm fire{|, <A.v>}," said <B.n>.',
            "<B.n> {said goodbye|went home}, but came back the next day with a {cake|basket of apples|jar of honey}.")
    s.ending(True, s.rng.choice(["happy", "glad"]))
    s.asks += ["a storm", "a <A.k> and a storm", f"a {kind}y night", "a <A.k> and a <B.k>",
               "a kind <A.k>", "a warm fire"]


def share_food(s):
    food = s.rng.choice(["bread", "apple pie", "berry cake", "carrot soup", "honey cake", "pancakes", "plum pie"])
    it = "them" if food == "pancakes" else "it"
    s.ctx.update(food=food, it=it)
    s.cast("A"); s.cast("B"); s.pick_weather(); s.pick_place(only=["village", "farm", "garden", "meadow"])
    s.opening("morning", where=False)
    s.say("<A> {wanted|decided} to make <food>.",
          'That day <A> {said to <A.f>, "Today I will make <food>."|made <food>.}',
          "There was nothing <A> liked more than {fresh|good} <food>, so <A.h> {made some|began to cook}.")
    s.fact(["What did <A.full> make?", "What did <A.full> cook?"], ["<A.full> made <food>."])
    s.maybe(0.8, "<A> {mixed|put} everything in a big {pot|bowl}, {sang a little song|hummed a song}, and waited." if "soup" in food or "cake" in food or "pie" in food else
            "<A> {worked all morning|sang while <A.h> worked}.",
            "<A> {worked and hummed|was busy for a long time}.")
    s.say("{Soon|Before long} the {whole house|kitchen} smelled {wonderful|sweet and warm|very good}.",
          "The smell of <food> {filled the air|went out of the window and down the road}.",
          f"When the <food> {'were' if it == 'them' else 'was'} ready, the smell was {{wonderful|so good}}.")
    s.new_par(0.3)
    s.say("<B.i> was {walking by|passing by}, and stopped {at the window|at the door}.",
          "Outside, <B.i> lifted <B.r> nose. What a smell!",
          "{Just then|Soon} there was a knock. It was <B.i>.")
    s.say('"That smells good," said <B.n>. "I {have not eaten all day|am so hungry}."',
          "<B.n> was {very hungry|so hungry} but {too shy|afraid} to ask.",
          '"I have nothing to eat at home," said <B.n>{| in a quiet voice}.')
    if "hungry" in s.parts[-1] or "eat" in s.parts[-1]:
        s.fact(["Who was hungry?"], ["<B.full> was hungry.", "It was <B.full>."])
    s.say("<A.n> looked at the <food>. There was not {so much|very much} of <it>, but {a good friend shares|it is good to share}.",
          "<A.n> {thought for a moment|did not wait long}. \"{Come in and eat with me|There is enough for two}!\"",
          '"Come in!" said <A.n>. "{Food tastes better with a friend|Let us share}."')
    s.say("<A.n> {gave <B.n> a big plate|gave <B.n> half of the <food>}, and they ate {at the table|by the window}." if "soup" in food or it == "them" else
          "<A.n> cut the <food> in two and gave <B.n> the {bigger|larger} {half|piece}.",
          "They {sat down|sat at the table} and ate {together|until everything was gone}.")
    s.fact(["What did they eat?", "What did <A.full> share?"], ["They ate <food>."])
    s.fact(["Who shared the <food>?"], ["<A.full> shared the <food> with <B.full>."])
    s.say('"This is the best <food> {in the world|I have ever had}," said <B.n>.',
          '"Thank you{|, <A.v>}," said <B.n>. "{Next time I will cook for you|You are very kind}."',
          "<B.n> {smiled|laughed} with a full mouth.")
    s.maybe(0.55, "The next day, <B.n> {came back|was at the door} with {a basket of nuts|a jar of honey|fresh flowers|a bag of apples}.")
    s.ending(True)
    s.asks += ["a <A.k> who makes <food>", "<food>", "a hungry <B.k>", "sharing", "a <A.k> and a <B.k>"]
