//! Adding up what test runners say in their closing lines.

use std::ops::AddAssign;

/// How many tests passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Tests that passed.
    pub passed: u32,
    /// Tests that failed, errors in their set-up included.
    pub failed: u32,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// The closing lines of cargo test ("test result: …") and pytest ("==== 3 passed in 1.20s ====").
pub fn closing_lines(output: &str) -> Vec<&str> {
    let is_closing = |line: &&str| {
        let pytest = line.starts_with("==") && line.ends_with("==") && line.contains("s ");
        line.starts_with("test result:") || (pytest && line.contains(" in "))
    };
    output.lines().map(str::trim).filter(is_closing).collect()
}

/// The counts in a closing line.
pub fn counts(line: &str) -> Tally {
    let words: Vec<&str> = line.split([' ', ',', ';']).filter(|word| !word.is_empty()).collect();
    let mut tally = Tally::default();
    for pair in words.windows(2) {
        let Ok(count) = pair[0].parse::<u32>() else { continue };
        match pair[1] {
            "passed" => tally.passed += count,
            "failed" | "error" | "errors" => tally.failed += count,
            _ => {}
        }
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_found_among_others() {
        let output = "running 2 tests\ntest a ... ok\n\
            test result: ok. 2 passed; 0 failed; 1 ignored; finished in 0.00s\n\
            ===== FAILURES =====\nassert 3 passed in vain\n\
            =================== 1 failed, 3 passed, 2 errors in 12.31s (0:00:12) ===================\n";
        let lines = closing_lines(output);
        assert_eq!(lines.len(), 2);
        assert_eq!(counts(lines[0]), Tally { passed: 2, failed: 0 });
        assert_eq!(counts(lines[1]), Tally { passed: 3, failed: 3 });
    }
}
