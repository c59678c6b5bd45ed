//! Facts, and the sentences that state them.

use rand::Rng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand_chacha::ChaCha8Rng;

/// Words for one thing; any of them may be used.
type Synonyms = &'static [&'static str];

const PEOPLE: [Synonyms; 8] =
    [&["Anna"], &["Ben"], &["Carla"], &["David"], &["Elena"], &["Felix"], &["Grace"], &["Hugo"]];

/// Past tense and participle are the same for each of these.
const ACTIONS: [Synonyms; 6] = [
    &["sold"],
    &["painted"],
    &["sent", "mailed"],
    &["lent", "loaned"],
    &["bought", "purchased"],
    &["found", "discovered"],
];

const NUMBERS: [Synonyms; 8] =
    [&["two"], &["three"], &["four"], &["five"], &["six"], &["seven"], &["eight"], &["ten"]];

const OBJECTS: [Synonyms; 8] = [
    &["bicycles", "bikes"],
    &["cars", "automobiles"],
    &["pictures", "photographs"],
    &["coats", "jackets"],
    &["books"],
    &["lamps"],
    &["chairs"],
    &["rings"],
];

const PLACES: [Synonyms; 6] =
    [&["in Rome"], &["in Paris"], &["in Madrid"], &["in Vienna"], &["in Lisbon"], &["in London"]];

/// Something that happened, or never did: who did what, with how many of which things, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    who: usize,
    action: usize,
    number: usize,
    object: usize,
    place: usize,
    negated: bool,
}

/// A detail in which two facts can differ.
#[derive(Clone, Copy, Debug)]
enum Detail {
    Who,
    Action,
    Number,
    Object,
    Place,
    Negation,
}

const DETAILS: [Detail; 6] =
    [Detail::Who, Detail::Action, Detail::Number, Detail::Object, Detail::Place, Detail::Negation];

impl Fact {
    /// Any fact. One in eight is about something that never happened.
    pub(super) fn random(rng: &mut ChaCha8Rng) -> Self {
        Self {
            who: rng.random_range(0..PEOPLE.len()),
            action: rng.random_range(0..ACTIONS.len()),
            number: rng.random_range(0..NUMBERS.len()),
            object: rng.random_range(0..OBJECTS.len()),
            place: rng.random_range(0..PLACES.len()),
            negated: rng.random_ratio(1, 8),
        }
    }

    /// A fact that differs in one to five details.
    pub(super) fn near_miss(self, rng: &mut ChaCha8Rng) -> Self {
        let mut details = DETAILS;
        details.shuffle(rng);
        let count = rng.random_range(1..DETAILS.len());
        let mut fact = self;
        for detail in &details[..count] {
            match detail {
                Detail::Who => fact.who = other(self.who, PEOPLE.len(), rng),
                Detail::Action => fact.action = other(self.action, ACTIONS.len(), rng),
                Detail::Number => fact.number = other(self.number, NUMBERS.len(), rng),
                Detail::Object => fact.object = other(self.object, OBJECTS.len(), rng),
                Detail::Place => fact.place = other(self.place, PLACES.len(), rng),
                Detail::Negation => fact.negated = !self.negated,
            }
        }
        fact
    }

    /// Whether the fact is kept for testing: one in five is, by a fixed hash.
    ///
    /// Negation does not count, so that a fact and its contrary are on the same side.
    pub(super) fn is_held_out(self) -> bool {
        let mut hash = 0u64;
        for part in [self.who, self.action, self.number, self.object, self.place] {
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
        let who = word(PEOPLE[self.who], rng);
        let never = if self.negated { "never " } else { "" };
        let did = word(ACTIONS[self.action], rng);
        let number = word(NUMBERS[self.number], rng);
        let things = word(OBJECTS[self.object], rng);
        let place = word(PLACES[self.place], rng);
        let sentence = match rng.random_range(0..5) {
            0 => format!("{who} {never}{did} {number} {things} {place}"),
            1 => format!("{place}, {who} {never}{did} {number} {things}"),
            2 => format!("{number} {things} were {never}{did} by {who} {place}"),
            3 => format!("{number} {things} were {never}{did} {place} by {who}"),
            _ => format!("{place}, {number} {things} were {never}{did} by {who}"),
        };
        capitalized(&sentence) + "."
    }
}

/// Every word that a sentence can have, in lower case and a fixed order.
pub(super) fn words() -> Vec<String> {
    let lists = [&PEOPLE[..], &ACTIONS[..], &NUMBERS[..], &OBJECTS[..], &PLACES[..]];
    let phrases = [".", ",", "never", "were", "by"].into_iter().chain(lists.concat().concat());
    let mut words: Vec<String> = Vec::new();
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
    fn about_one_fact_in_five_is_held_out_together_with_its_contrary() {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let facts: Vec<_> = (0..10_000).map(|_| Fact::random(&mut rng)).collect();
        let held_out = facts.iter().filter(|fact| fact.is_held_out()).count();
        assert!((1900..2100).contains(&held_out), "{held_out}");
        for fact in facts {
            let contrary = Fact { negated: !fact.negated, ..fact };
            assert_eq!(fact.is_held_out(), contrary.is_held_out());
        }
    }
}
