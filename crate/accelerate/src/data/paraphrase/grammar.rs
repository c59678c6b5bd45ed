//! Facts, and the sentences that state them.

use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

/// Words for one thing; any of them may be used.
type Synonyms = &'static [&'static str];

const PEOPLE: [&str; 16] = [
    "Anna", "Ben", "Carla", "David", "Elena", "Felix", "Grace", "Hugo", "Irene", "Jonas", "Karen",
    "Luca", "Maria", "Nora", "Oscar", "Paul",
];

const NUMBERS: [Synonyms; 8] =
    [&["two"], &["three"], &["four"], &["five"], &["six"], &["seven"], &["eight"], &["ten"]];

const OBJECTS: [Synonyms; 14] = [
    &["bicycles", "bikes"],
    &["cars", "automobiles"],
    &["pictures", "photographs"],
    &["coats", "jackets"],
    &["sofas", "couches"],
    &["presents", "gifts"],
    &["stones", "rocks"],
    &["books"],
    &["lamps"],
    &["chairs"],
    &["rings"],
    &["letters"],
    &["maps"],
    &["clocks"],
];

const PLACES: [Synonyms; 9] = [
    &["in Rome"],
    &["in Paris"],
    &["in Madrid"],
    &["in Vienna"],
    &["in Lisbon"],
    &["at school"],
    &["at the station", "at the terminal"],
    &["in the shop", "in the store"],
    &["in the woods", "in the forest"],
];

const TIMES: [Synonyms; 10] = [
    &["on Monday"],
    &["on Tuesday"],
    &["on Wednesday"],
    &["on Thursday"],
    &["on Friday"],
    &["on Saturday"],
    &["on Sunday"],
    &["at night"],
    &["in autumn", "in fall"],
    &["last year", "a year ago"],
];

/// A way to say that something goes from one person to another.
struct Verb {
    base: &'static str,
    past: &'static str,
    participle: &'static str,
}

const fn regular(base: &'static str, past: &'static str) -> Verb {
    Verb { base, past, participle: past }
}

/// What happens: the verbs that say so and the preposition of the other person.
struct Action {
    verbs: &'static [Verb],
    preposition: &'static str,
}

const ACTIONS: [Action; 8] = [
    Action { verbs: &[regular("sell", "sold")], preposition: "to" },
    Action { verbs: &[regular("send", "sent"), regular("mail", "mailed")], preposition: "to" },
    Action { verbs: &[regular("lend", "lent"), regular("loan", "loaned")], preposition: "to" },
    Action {
        verbs: &[
            Verb { base: "show", past: "showed", participle: "shown" },
            regular("present", "presented"),
        ],
        preposition: "to",
    },
    Action { verbs: &[regular("promise", "promised")], preposition: "to" },
    Action {
        verbs: &[regular("buy", "bought"), regular("purchase", "purchased")],
        preposition: "from",
    },
    Action { verbs: &[regular("borrow", "borrowed")], preposition: "from" },
    Action {
        verbs: &[
            Verb { base: "steal", past: "stole", participle: "stolen" },
            regular("snatch", "snatched"),
        ],
        preposition: "from",
    },
];

/// Something that happened, or did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    who: usize,
    action: usize,
    number: usize,
    object: usize,
    whom: usize,
    place: usize,
    time: usize,
    negated: bool,
}

/// A detail in which two facts can differ.
#[derive(Clone, Copy, Debug)]
enum Detail {
    Who,
    Action,
    Number,
    Object,
    Whom,
    Place,
    Time,
    Negation,
    SwappedRoles,
}

const DETAILS: [Detail; 9] = [
    Detail::Who,
    Detail::Action,
    Detail::Number,
    Detail::Object,
    Detail::Whom,
    Detail::Place,
    Detail::Time,
    Detail::Negation,
    Detail::SwappedRoles,
];

impl Fact {
    /// Any fact. One in eight is about something that did not happen.
    pub(super) fn random(rng: &mut ChaCha8Rng) -> Self {
        let who = rng.random_range(0..PEOPLE.len());
        Self {
            who,
            action: rng.random_range(0..ACTIONS.len()),
            number: rng.random_range(0..NUMBERS.len()),
            object: rng.random_range(0..OBJECTS.len()),
            whom: other(who, PEOPLE.len(), rng),
            place: rng.random_range(0..PLACES.len()),
            time: rng.random_range(0..TIMES.len()),
            negated: rng.random_ratio(1, 8),
        }
    }

    /// A fact that differs in one detail.
    pub(super) fn near_miss(self, rng: &mut ChaCha8Rng) -> Self {
        let mut fact = self;
        match DETAILS.choose(rng).copied().unwrap_or(Detail::Number) {
            Detail::Who => fact.who = self.other_person(rng),
            Detail::Whom => fact.whom = self.other_person(rng),
            Detail::Action => fact.action = other(self.action, ACTIONS.len(), rng),
            Detail::Number => fact.number = other(self.number, NUMBERS.len(), rng),
            Detail::Object => fact.object = other(self.object, OBJECTS.len(), rng),
            Detail::Place => fact.place = other(self.place, PLACES.len(), rng),
            Detail::Time => fact.time = other(self.time, TIMES.len(), rng),
            Detail::Negation => fact.negated = !self.negated,
            Detail::SwappedRoles => (fact.who, fact.whom) = (self.whom, self.who),
        }
        fact
    }

    fn other_person(self, rng: &mut ChaCha8Rng) -> usize {
        loop {
            let person = rng.random_range(0..PEOPLE.len());
            if person != self.who && person != self.whom {
                return person;
            }
        }
    }

    /// Whether the fact is kept for testing: one in five is, by a fixed hash.
    ///
    /// The hash looks neither at the order of the two people nor at negation, so that near misses
    /// of these kinds are found on both sides.
    pub(super) fn is_held_out(self) -> bool {
        let people = [self.who.min(self.whom), self.who.max(self.whom)];
        let rest = [self.action, self.number, self.object, self.place, self.time];
        let mut hash = 0u64;
        for part in people.into_iter().chain(rest) {
            // SplitMix64's finaliser (Steele, Lea and Flood, 2014).
            hash = (hash ^ part as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
            hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            hash ^= hash >> 31;
        }
        hash.is_multiple_of(5)
    }

    /// One of the sentences that state this fact.
    pub(super) fn sentence(self, rng: &mut ChaCha8Rng) -> String {
        let (who, whom) = (PEOPLE[self.who], PEOPLE[self.whom]);
        let Action { verbs, preposition } = &ACTIONS[self.action];
        let verb = &verbs[rng.random_range(0..verbs.len())];
        let things =
            format!("{} {}", word(NUMBERS[self.number], rng), word(OBJECTS[self.object], rng));
        let (place, time) = (word(PLACES[self.place], rng), word(TIMES[self.time], rng));
        let did =
            if self.negated { format!("did not {}", verb.base) } else { verb.past.to_owned() };
        let were = if self.negated { "were not" } else { "were" };
        let participle = verb.participle;
        let sentence = match rng.random_range(0..6) {
            0 => format!("{who} {did} {things} {preposition} {whom} {place} {time}"),
            1 => format!("{who} {did} {things} {preposition} {whom} {time} {place}"),
            2 => format!("{time}, {who} {did} {things} {preposition} {whom} {place}"),
            3 => format!("{place}, {who} {did} {things} {preposition} {whom} {time}"),
            4 => {
                format!("{things} {were} {participle} {preposition} {whom} by {who} {place} {time}")
            }
            _ => format!(
                "{time}, {things} {were} {participle} {preposition} {whom} by {who} {place}"
            ),
        };
        capitalized(&sentence) + "."
    }
}

/// Every word that a sentence can have, in a fixed order.
pub(super) fn words() -> Vec<String> {
    let verbs = ACTIONS.iter().flat_map(|action| action.verbs);
    let verbs = verbs.flat_map(|verb| [verb.base, verb.past, verb.participle]);
    let synonyms = [&NUMBERS[..], &OBJECTS[..], &PLACES[..], &TIMES[..]].concat();
    let mut words: Vec<String> = Vec::new();
    let phrases = [".", ",", "did not", "were", "by", "to", "from"].into_iter().chain(PEOPLE);
    let phrases = phrases.chain(verbs).chain(synonyms.concat());
    for word in phrases.flat_map(str::split_whitespace).map(str::to_lowercase) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

fn word(synonyms: Synonyms, rng: &mut ChaCha8Rng) -> &'static str {
    synonyms.choose(rng).copied().unwrap_or_default()
}

/// An index below `len` that is not `index`.
fn other(index: usize, len: usize, rng: &mut ChaCha8Rng) -> usize {
    (index + rng.random_range(1..len)) % len
}

fn capitalized(sentence: &str) -> String {
    let mut chars = sentence.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn a_near_miss_is_another_fact() {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        for _ in 0..1000 {
            let fact = Fact::random(&mut rng);
            assert_ne!(fact, fact.near_miss(&mut rng));
        }
    }

    #[test]
    fn about_one_fact_in_five_is_held_out_and_swapped_roles_stay_on_their_side() {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let facts: Vec<_> = (0..10_000).map(|_| Fact::random(&mut rng)).collect();
        let held_out = facts.iter().filter(|fact| fact.is_held_out()).count();
        assert!((1900..2100).contains(&held_out), "{held_out}");
        for fact in facts {
            let swapped = Fact { who: fact.whom, whom: fact.who, negated: !fact.negated, ..fact };
            assert_eq!(fact.is_held_out(), swapped.is_held_out());
        }
    }
}
