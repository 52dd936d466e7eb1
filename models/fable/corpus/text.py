"""Templates with choices, and the sentences made from them."""
import re


def spin(rng, s):
    """Resolves {a|b} choices, innermost first."""
    while True:
        m = re.search(r"\{([^{}]*)\}", s)
        if not m:
            return s
        s = s[:m.start()] + rng.choice(m.group(1).split("|")) + s[m.end():]


def article(s):
    return re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", s)


TAG = re.compile(r'([,?!]" )(said|cried|asked|thought|whispered|wondered|called|laughed|answered|explained|sighed) (he|she)\b')


def upper_first(s):
    for i, c in enumerate(s):
        if c.isalpha():
            return s[:i] + c.upper() + s[i + 1:]
        if c not in "\"'":
            break
    return s


def capitals(s):
    s = upper_first(s)
    s = re.sub(r'([.?!] |\n)("?)([a-z])', lambda m: m[1] + m[2] + m[3].upper(), s)
    return re.sub(r'(\." )("?)([a-z])', lambda m: m[1] + m[2] + m[3].upper(), s)
