"""Questions about the small world, and small talk, with answers."""
from .text import article, spin, upper_first
from .world import COLOURS, DAYS, NUM, SEASONS, SPECIES

SKY = {"the sky": "blue", "grass": "green", "snow": "white", "the sun": "yellow", "a lemon": "yellow", "a carrot": "orange",
       "a strawberry": "red", "the night": "black", "milk": "white", "a leaf in summer": "green", "an orange": "orange", "a crow": "black",
       "a frog": "green", "a ripe banana": "yellow", "a pumpkin": "orange", "the sea": "blue", "a fox": "red", "a cloud": "white", "a plum": "purple",
       "a pig": "pink", "a bear": "brown", "a sunflower": "yellow", "gold": "yellow", "a cherry": "red"}
OPP = [("hot", "cold"), ("big", "small"), ("day", "night"), ("up", "down"), ("happy", "sad"), ("fast", "slow"), ("wet", "dry"), ("old", "young"),
       ("light", "dark"), ("open", "closed"), ("high", "low"), ("loud", "quiet"), ("full", "empty"), ("good", "bad"), ("left", "right"), ("yes", "no"),
       ("early", "late"), ("soft", "hard"), ("near", "far"), ("strong", "weak"), ("long", "short"), ("in", "out"), ("first", "last"), ("summer", "winter"),
       ("sweet", "sour"), ("awake", "asleep"), ("rich", "poor"), ("brave", "afraid")]
SOUND = {"dog": "woof", "cat": "meow", "cow": "moo", "duck": "quack", "sheep": "baa", "pig": "oink", "owl": "hoo", "mouse": "squeak", "frog": "ribbit",
         "bee": "buzz", "crow": "caw", "hen": "cluck", "horse": "neigh"}
HOME = {"bear": "in a cave", "fox": "in a den", "rabbit": "in a burrow", "bird": "in a nest", "bee": "in a hive", "fish": "in the water", "squirrel": "in a tree",
        "mole": "under the ground", "owl": "in a hollow tree", "frog": "by the pond", "sheep": "on a farm", "hen": "on a farm", "deer": "in the forest", "duck": "by the lake"}
EATS = {"rabbit": "carrots", "bear": "honey", "squirrel": "nuts", "mouse": "cheese", "cat": "fish", "hen": "corn", "sheep": "grass", "goat": "grass", "otter": "fish",
        "turtle": "leaves", "deer": "leaves", "horse": "hay"}
YOUNG = {"duck": "duckling", "cat": "kitten", "dog": "puppy", "sheep": "lamb", "hen": "chick", "bear": "cub", "rabbit": "bunny", "horse": "foal", "cow": "calf",
         "pig": "piglet", "goat": "kid", "fox": "cub", "deer": "fawn"}
SIZES = ["ant", "bee", "mouse", "frog", "squirrel", "hedgehog", "rabbit", "cat", "fox", "sheep", "deer", "bear", "elephant"]
CAN = {"fly": (["owl", "crow", "duck", "bee", "butterfly"], ["fox", "bear", "mouse", "pig", "turtle", "dog"]),
       "swim": (["duck", "otter", "frog", "fish", "turtle"], ["butterfly", "hen", "bee"]),
       "climb a tree": (["squirrel", "cat", "bear"], ["pig", "sheep", "fish", "duck"])}
USES = {"a lantern": "to give light in the dark", "an umbrella": "to stay dry in the rain", "a key": "to open a door", "a blanket": "to keep warm",
        "a bucket": "to carry water", "a spoon": "to eat soup", "a book": "to read", "a bridge": "to cross a river", "a kite": "to fly in the wind",
        "a bed": "to sleep", "a boat": "to cross the water", "a hat": "to keep your head warm", "a clock": "to tell the time", "a needle": "to sew", "a bell": "to ring"}
UNKNOWN = ["What is the capital of {France|Spain|Japan|Italy|Egypt|Brazil}?", "Who is the president?", "Who wrote {Hamlet|this book}?", "How do I {install Linux|fix my car|write Python code|cook rice}?",
           "What is {quantum physics|machine learning|a computer|the internet|the stock market|democracy|DNA}?", "Explain {gravity|the universe|electricity|chemistry} to me.",
           "What is the time?", "What is the news today?", "Translate {hello|this} into {French|German|Spanish}.", "How far is {the moon|Mars|London}?", "What is {137|250|48|999} {times|plus|divided by} {12|345|77}?",
           "Write a program in {C|Rust|Python|Java}.", "When was {Napoleon|Mozart|Einstein} born?", "What is the best {phone|laptop|car}?"]


def facts_chat(rng):
    """Returns one question about the small world, and its answer."""
    k = rng.randrange(21)
    f = lambda t: article(spin(rng, t))
    if k == 0:
        t, c = rng.choice(list(SKY.items()))
        b = t[0].upper() + t[1:]
        return f("{What colour|What color|Which colour} is %s?" % t), f("{%s is %s.|It is %s.}" % (b, c, c))
    if k in (1, 2):
        a, b = rng.choice(OPP)
        if rng.random() < .5:
            a, b = b, a
        return f("What is the opposite of {%s|\"%s\"}?" % (a, a)), f("The opposite of %s is %s." % (a, b))
    if k == 3:
        a, b = rng.choice([(1, 10), (1, 10), (1, 5), (1, 3), (2, 6), (3, 9), (4, 8), (5, 10), (1, 8), (1, 7), (1, 6)])
        q = f("{Count to|Please count to|Can you count to} %s" % NUM[b]) if a == 1 else f("{Count|Please count|Can you count} from %s to %s" % (NUM[a], NUM[b]))
        return q + ("?" if q.startswith("Can") else "."), upper_first(", ".join(NUM[a:b + 1])) + "."
    if k == 4:
        if rng.random() < .3:
            return f("{Can you count backwards from ten?|Count backwards from ten.}"), "Ten, nine, eight, seven, six, five, four, three, two, one."
        n = rng.randint(1, 19)
        if rng.random() < .5:
            return f("What {number |}comes after %s?" % NUM[n]), f("%s comes after %s." % (upper_first(NUM[n + 1]), NUM[n]))
        return f("What {number |}comes before %s?" % NUM[n + 1]), f("%s comes before %s." % (upper_first(NUM[n]), NUM[n + 1]))
    if k in (5, 6, 7, 8):
        a, b = rng.randint(0, 9), rng.randint(0, 9)
        if rng.random() < .3:
            a, b = max(a, b), min(a, b)
            if rng.random() < .5:
                return f("{What is|How much is} %s minus %s?" % (NUM[a], NUM[b])), f("%s minus %s is %s." % (upper_first(NUM[a]), NUM[b], NUM[a - b]))
            return f("What is %d - %d?" % (a, b)), "%d - %d = %d" % (a, b, a - b)
        if rng.random() < .5:
            return f("{What is|How much is} %s plus %s?" % (NUM[a], NUM[b])), f("%s plus %s is %s." % (upper_first(NUM[a]), NUM[b], NUM[a + b]))
        return f("{What is|How much is} %d + %d?" % (a, b)), "%d + %d = %d" % (a, b, a + b)
    if k in (9, 10):
        r = rng.random()
        i = rng.randrange(7)
        if r < .4:
            return f("{What|Which} day comes after %s?" % DAYS[i]), "%s comes after %s." % (DAYS[(i + 1) % 7], DAYS[i])
        if r < .65:
            return f("{What|Which} day comes before %s?" % DAYS[i]), "%s comes before %s." % (DAYS[(i - 1) % 7], DAYS[i])
        if r < .75:
            return f("How many days {are there in a week|does a week have}?"), f("{There are seven days in a week|A week has seven days}.")
        if r < .9:
            return f("{What are the days of the week?|Name the days of the week.|Tell me the days of the week.}"), ", ".join(DAYS[:6]) + ", and Sunday."
        j = rng.randrange(4)
        return f("{What|Which} season comes after %s?" % SEASONS[j]), "%s comes after %s." % (upper_first(SEASONS[(j + 1) % 4]), SEASONS[j])
    if k == 11:
        if rng.random() < .3:
            return f("{What are the four seasons?|Name the four seasons.}"), "The four seasons are spring, summer, autumn, and winter."
        a, n = rng.choice(list(SOUND.items()))
        return f("{What does a %s say?|What sound does a %s make?}" % (a, a)), f("A %s says \"%s\"." % (a, n))
    if k == 12:
        a, n = rng.choice(list(HOME.items()))
        return f("Where does a %s live?" % a), f("A %s lives %s." % (a, n))
    if k == 13:
        a, n = rng.choice(list(EATS.items()))
        return f("What does a %s {eat|like to eat}?" % a), f("A %s {likes to eat|eats} %s." % (a, n))
    if k == 14:
        a, n = rng.choice(list(YOUNG.items()))
        return f("What {is a baby %s called|do you call a baby %s|is a young %s called}?" % (a, a, a)), f("A {baby|young} %s is called a %s." % (a, n))
    if k == 15:
        i, j = rng.sample(range(len(SIZES)), 2)
        big, small = SIZES[max(i, j)], SIZES[min(i, j)]
        x, y = rng.sample([big, small], 2)
        if rng.random() < .5:
            return f("{Which|What} is bigger, a %s or a %s?" % (x, y)), f("A %s is bigger than a %s." % (big, small))
        return f("{Which|What} is smaller, a %s or a %s?" % (x, y)), f("A %s is smaller than a %s." % (small, big))
    if k == 16:
        v, (yes, no) = rng.choice(list(CAN.items()))
        if rng.random() < .5:
            a = rng.choice(yes)
            return f("Can a %s %s?" % (a, v)), f("Yes, a %s can %s." % (a, v))
        a = rng.choice(no)
        return f("Can a %s %s?" % (a, v)), f("No, a %s cannot %s." % (a, v))
    if k == 17:
        a, n = rng.choice(list(USES.items()))
        return f("{What is %s for?|What do you use %s for?|What can you do with %s?}" % (a, a, a)), f("You use %s %s." % (a, n))
    if k == 18:
        n = rng.choice([2, 3, 3, 4])
        what, pool = rng.choice([("animals", list(SPECIES)), ("colours", COLOURS[:10]), ("fruits", ["apple", "pear", "plum", "cherry", "peach"]), ("animals", list(SPECIES))])
        items = rng.sample(pool, n)
        if what != "colours":
            items = [article("a " + x) for x in items]
        return f("{Name %s %s.|Tell me %s %s.|Can you name %s %s?}" % ((NUM[n], what) * 3)), upper_first(", ".join(items[:-1]) + (", and " if n > 2 else " and ") + items[-1]) + "."
    if k == 19:
        return social(rng)
    return f("{" + "|".join(UNKNOWN) + "}"), f(
        "{I do not know that. I am a very small model, and I know only little stories. Would you like to hear one?|I am sorry, I do not know. But I can tell you a story.|"
        "That is too hard for me. I am a small model who tells stories.|I do not know the answer. Shall I tell you a story instead?}")


def social(rng):
    return tuple(spin(rng, x) for x in rng.choice([
        ("{Hello!|Hi!|Hello|Hi|Good morning!|Hey there!|Hello there.|hello|hi}", "{Hello! Would you like to hear a story?|Hello! How can I help you?|Hi! I am Fable. Shall I tell you a story?|Hello! It is nice to meet you.}"),
        ("{Who are you?|What are you?|What is your name?|Tell me about yourself.|Are you a robot?}", "{I am Fable, a very small language model. I tell little stories.|My name is Fable. I am a small model, and I like to tell stories.}"),
        ("{How are you?|How are you today?|How do you feel?}", "{I am fine, thank you. How are you?|I am well, thank you. Shall I tell you a story?}"),
        ("{What can you do?|How can you help me?|What do you know?|Help}", "{I can tell short stories, answer questions about them, count to ten, and add small numbers.|I can tell you a little story. Ask me for one about a fox, a storm, or a lost hat.}"),
        ("{Thank you!|Thanks!|Thank you very much.|Thanks a lot!}", "{You are welcome!|You are welcome. I am glad that you liked it.|It was my pleasure.}"),
        ("{Goodbye!|Bye!|See you tomorrow.|Good night!}", "{Goodbye! Come back soon.|Goodbye, and have a lovely day!|Good night, and sweet dreams.}"),
        ("{I am sad.|I feel sad today.|I am lonely.}", "{I am sorry to hear that. Would you like a story to cheer you up?|I am sorry. Sometimes a good story helps. Shall I tell you one?}"),
        ("{I am happy.|I feel happy today!|Today is a good day.}", "{That is lovely to hear!|I am glad! Shall we celebrate with a story?}"),
        ("{Do you like stories?|Do you like animals?|What do you like?}", "{Yes, I love stories about animals and friends.|I like stories with a happy ending.}"),
        ("{What is your favourite animal?|Which animal do you like best?}", "{I like foxes, because they are clever.|I like owls, because they are wise.|I like bears, because they are strong and gentle.}"),
        ("{Say something nice.|Tell me something kind.}", "{You are a good friend, and the world is better with you in it.|Every day is a little gift, and so are you.|A kind word is like a warm fire, and I have one for you: well done!}"),
    ]))
