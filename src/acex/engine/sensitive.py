"""Columns whose names look unchangeable or sensitive, such as sex and age, in seven languages.

A name is compared word by word: "age" is found in `applicant_age` and `ageAtEntry`, but not in `page` or `usage`.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Collection
from itertools import pairwise

from acex.space.space import Space
from acex.values import Remark, joined_words

# English, German, French, Spanish, Italian, Portuguese, Dutch; without accents. Words that often mean something else
# (genre, origin, disabled, Italian eta) are left out.
SINGLE = """
    sex gender male female geschlecht mannlich weiblich sexe sexo genero sesso geslacht
    age alter lebensalter edad idade leeftijd
    race racial ethnicity ethnic ethnie ethnizitat rasse raza etnia razza raca etniciteit hautfarbe caste
    hispanic hispanics hispan latino latina asian nonwhite caucasian minority immigrant foreigner indigenous
    nationality citizenship nationalitat staatsangehorigkeit staatsburgerschaft nationalite citoyennete nacionalidad
    ciudadania nazionalita cittadinanza nacionalidade cidadania nationaliteit geburtsland migrationshintergrund
    religion religious konfession religionszugehorigkeit religione religiao religie
    marital married divorced widowed widow familienstand zivilstand verheiratet matrimonial matrimoniale
    disability handicap behinderung schwerbehinderung discapacidad disabilita incapacidade
    birthday birthdate birthyear birthplace dob yob geburtsdatum geburtsjahr geburtstag geburtsort naissance nacimiento
    nascita nascimento geboortedatum geboortejaar
    pregnant pregnancy pregnancies schwanger schwangerschaft enceinte grossesse embarazo embarazada gravidanza incinta
    gravidez zwanger zwangerschap
"""
PAIRS = """
    birth date, birth day, birth year, birth place, birth country, of birth, native country, native born, foreign
    born, civil status, etat civil, estado civil, stato civile, burgerlijke staat, sexual orientation, skin color,
    skin colour, native language, mother tongue, blood type, blood group, political party, political opinion, trade
    union, veteran status
"""
WORDS, PHRASES = frozenset(SINGLE.split()), frozenset(" ".join(pair.split()) for pair in PAIRS.split(","))
ALONE = frozenset({"black", "white"})  # refer to a person as a whole name; in longer names often the color of a thing
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\W\d_]+")


def is_sensitive(name: str) -> bool:
    """Whether a column of this name seems to hold something that people cannot change or that must not decide."""
    if "età" in re.split(r"[\W\d_]+", unicodedata.normalize("NFC", name).lower()):
        return True
    letters = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    words = CAMEL.split("".join(c for c in letters if not unicodedata.combining(c)))
    plain = [word.lower() for word in words if word]
    if len(plain) == 1 and plain[0] in ALONE:
        return True
    pairs = [f"{a} {b}" for a, b in pairwise(plain)]
    plain += [re.sub(r"([aou])e", r"\1", word) for word in plain]  # German umlauts are often written ae, oe, ue
    return not (WORDS.isdisjoint(plain) and PHRASES.isdisjoint(pairs))


def free_sensitive_columns(space: Space, limited: Collection[str]) -> tuple[Remark, ...]:
    """A remark on columns that look sensitive and may change freely; `limited` are those with ranges or values.

    Features that the caller declared are not reported.
    """
    free = [f for f in space.features if f.name in space.inferred and not f.frozen and f.direction is None]
    found = [f.name for f in free if f.name not in limited and is_sensitive(f.name)]
    if not found:
        return ()
    one = len(found) == 1
    listed = ", ".join(f'"{name}"' for name in found)
    flags = " ".join(f"--freeze {shlex.quote(name)}" for name in found)
    text = f"{joined_words(found)} {'looks' if one else 'look'} unchangeable or sensitive and may change."
    advice = f"To freeze {'it' if one else 'them'}: freeze=[{listed}] (in the shell {flags})."
    return (Remark("sensitive", text, advice=advice),)
