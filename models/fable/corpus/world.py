"""The world of the stories: names, animals, places, things and weather."""

GIRLS = ["Mia", "Lily", "Anna", "Nora", "Rosa", "Ivy", "Ella", "Ruby"]
BOYS = ["Tom", "Ben", "Sam", "Leo", "Max", "Finn", "Jack", "Otto"]
A_GIRLS = ["Hazel", "Daisy", "Poppy", "Clover", "Dot", "Willow", "Bella", "Penny"]
A_BOYS = ["Pip", "Bruno", "Rusty", "Moss", "Toby", "Oscar", "Felix", "Milo"]

# kind: (where it lives, what it likes to eat)
SPECIES = {
    "fox": ("in a den under an old oak tree", "berries"),
    "rabbit": ("in a burrow on the hill", "carrots"),
    "owl": ("in a hollow tree", "nuts"),
    "bear": ("in a warm cave", "honey"),
    "mouse": ("in a tiny house behind the mill", "cheese"),
    "frog": ("beside a small green pond", "soup"),
    "duck": ("in a nest by the lake", "bread"),
    "hen": ("on a little farm", "corn"),
    "cat": ("in a house in the village", "fish"),
    "dog": ("on a farm by the road", "bread"),
    "squirrel": ("in a tall tree", "nuts"),
    "hedgehog": ("under a bush full of leaves", "apples"),
    "badger": ("in a warm home under the ground", "mushrooms"),
    "goat": ("on the side of a hill", "grass"),
    "mole": ("in a long tunnel under the garden", "potatoes"),
    "otter": ("beside the river", "fish"),
    "crow": ("in a nest in a tall tree", "corn"),
    "turtle": ("near the lake", "leaves"),
    "sheep": ("in a green meadow", "grass"),
    "pig": ("on a small farm", "apples"),
    "deer": ("in the deep forest", "leaves"),
}
FLYERS = ["owl", "crow", "duck"]
CLIMBERS = ["squirrel", "cat", "owl", "crow"]
SWIMMERS = ["frog", "duck", "otter", "turtle"]
DIGGERS = ["mole", "badger", "rabbit"]
BIG = ["bear", "goat", "deer", "dog"]

# place: (in it, to it, spots in it)
PLACES = {
    "forest": ("in the forest", "into the forest",
               ["under a tall tree", "behind a bush", "in a pile of leaves", "next to a log",
                "under a log", "between two roots"]),
    "garden": ("in the garden", "into the garden",
               ["behind the gate", "under the rose bush", "between the carrots", "near the well",
                "under the bench"]),
    "river": ("by the river", "down to the river",
              ["under the bridge", "between two stones", "in the long grass", "on the bank"]),
    "hill": ("on the hill", "up the hill",
             ["behind a rock", "at the top of the hill", "in the long grass", "under a small tree"]),
    "beach": ("on the beach", "to the beach",
              ["in the sand", "behind a rock", "under an old boat", "next to a shell"]),
    "farm": ("on the farm", "to the farm",
             ["in the barn", "in the hay", "behind the fence", "under the cart"]),
    "village": ("in the village", "to the village",
                ["on a bench", "near the well", "by the door of the bakery", "under a cart"]),
    "lake": ("by the lake", "to the lake",
             ["on the bank", "under an old boat", "in the reeds", "behind a stone"]),
    "meadow": ("in the meadow", "across the meadow",
               ["in the long grass", "under a flower", "behind a stone", "next to the fence"]),
}

# object: (colours, reason to like it / use with a friend)
OBJECTS = {
    "lantern": (["red", "yellow", "green", "silver"],
                "{lit the lantern and watched it glow|sat around the lantern until it was time to sleep|walked home by the light of the lantern}"),
    "kite": (["red", "blue", "yellow", "orange"],
             "{flew the kite high above the trees|ran up and down with the kite|let the kite dance in the wind}"),
    "ball": (["red", "blue", "green", "white"],
             "{played with the ball until they were tired|rolled the ball down the hill|threw the ball back and forth}"),
    "bell": (["gold", "silver", "blue"],
             "{rang the bell and laughed|listened to the clear sound of the bell|rang the bell for everyone to hear}"),
    "basket": (["brown", "yellow", "white"],
               "{filled the basket with berries|filled the basket with apples|carried the basket home together}"),
    "hat": (["red", "blue", "black", "green", "yellow"],
            "{took turns wearing the hat|laughed at how funny the hat looked|put flowers on the hat}"),
    "scarf": (["red", "blue", "white", "purple", "green"],
              "{shared the scarf because it was so long|wrapped the scarf around both of them|sat close together under the scarf}"),
    "key": (["gold", "silver", "black"],
            "{opened the old box with the key|opened the little door with the key|used the key to open a box of sweets}"),
    "boat": (["red", "white", "blue", "yellow"],
             "{let the boat sail across the pond|put the boat on the water and watched it go|made a sail for the boat}"),
    "book": (["blue", "green", "red", "brown"],
             "{read the book from start to end|looked at all the pictures in the book|read the book aloud}"),
    "cup": (["white", "blue", "green", "pink"],
            "{drank warm tea|had some warm milk|filled the cup with berries}"),
    "umbrella": (["red", "black", "yellow", "purple"],
                 "{walked home under the umbrella|sat under the umbrella and told stories|danced with the umbrella}"),
    "drum": (["red", "brown", "blue"],
             "{played the drum and sang|marched around with the drum|made music with the drum}"),
    "blanket": (["white", "blue", "pink", "green"],
                "{sat on the blanket and ate some cake|lay on the blanket and looked at the sky|shared the blanket}"),
    "flute": (["brown", "silver", "white"],
              "{made music with the flute|danced while the flute played|took turns playing the flute}"),
    "shell": (["white", "pink", "orange"],
              "{listened to the sea in the shell|held the shell up to the light|put the shell on the shelf}"),
    "ring": (["gold", "silver"],
             "{watched the ring shine in the light|looked at the ring again and again}"),
    "bucket": (["red", "blue", "yellow"],
               "{filled the bucket with water|filled the bucket with shells|carried the bucket together}"),
    "feather": (["white", "blue", "black", "gold"],
                "{made a crown with the feather|watched the feather float down|wrote a letter with the feather}"),
    "button": (["red", "blue", "gold", "green"],
               "{sewed the button back on the coat|made a toy out of the button and some string}"),
}
WIND_TAKES = {"kite", "hat", "scarf", "umbrella", "feather", "blanket"}
COLOURS = ["red", "blue", "green", "yellow", "white", "black", "brown", "orange", "pink",
           "purple", "gold", "silver"]

# weather by part of the day. Every line must fit any continuation of a plot; plots that need a
# certain weather request it.
WEATHER = {
    "sunny": ("sunny|bright|warm", [
        "The sun was {shining|warm} and the sky was blue.",
        "The sun shone {brightly|down} on the {grass|trees|path|roofs}.",
        "There was not a cloud in the sky.",
        "It was a {lovely|fine|beautiful} day, and the {birds|bees} were busy.",
        "The air was {warm|sweet} and smelled of {flowers|grass}."]),
    "windy": ("windy", [
        "The wind {was strong and pulled at the leaves|blew through the trees|made the grass dance}.",
        "A {strong|playful} wind was blowing.",
        "The wind was {busy|loud}, and the clouds moved fast.",
        "Leaves {flew|danced} in the wind."]),
    "rainy": ("rainy|wet|grey", [
        "The rain {fell softly|tapped on the roofs|fell on everything}.",
        "Rain was falling, and the path was full of puddles.",
        "It had been raining since {early morning|the night before}.",
        "Small drops of rain {hung on|fell from} every leaf."]),
    "snowy": ("snowy|cold", [
        "Snow covered the {ground|roofs|trees}.",
        "The snow was deep and soft.",
        "Everything was white and {quiet|still}.",
        "Snow had fallen all night long."]),
    "foggy": ("foggy|grey|misty", [
        "The fog was so thick that the trees {looked like ghosts|were hard to see}.",
        "A white fog lay over the {ground|land}.",
        "The fog made everything {quiet|soft and grey}."]),
    "cloudy": ("cloudy|cool|quiet", [
        "Soft {grey|white} clouds {covered|filled|hung in} the sky.",
        "The sky was grey, but {it did not rain|there was no rain}.",
        "Big clouds {moved|drifted} slowly over the {hills|roofs|trees}.",
        "The air was cool and {still|calm}."]),
}
NOTICES = {   # small details of such weather, by day
    "sunny": ["A butterfly {sat on a flower|flew by}.", "A bird sang in a tree.",
              "The bees hummed in the flowers.", "Far away, a bell rang.",
              "A small cloud drifted by, as white as {milk|wool}."],
    "windy": ["The trees {bent|whispered} in the wind.", "A leaf {flew by|landed on the path}.",
              "Far away, a {door|gate} banged in the wind."],
    "rainy": ["The rain made a soft sound on the leaves.", "A snail moved slowly along the path.",
              "The puddles shone like {little mirrors|glass}."],
    "snowy": ["The snow {crunched under every step|sparkled like sugar}.",
              "A small bird left tiny marks in the snow.", "The air was so cold that breath turned to mist."],
    "foggy": ["Somewhere a bird called.", "The fog swallowed every sound.",
              "Drops of water hung on the grass."],
    "cloudy": ["A bird sang in a tree.", "A {leaf|feather} floated down.", "Far away, a bell rang."],
}
GOOD = ["kind", "brave", "clever", "gentle", "quiet", "cheerful", "curious", "friendly", "shy",
        "careful", "busy", "patient"]
SIZE = ["little", "small", "young", "little"]
NUM = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
       "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
       "nineteen", "twenty"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
SEASONS = ["spring", "summer", "autumn", "winter"]
