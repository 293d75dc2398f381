//! `LIKE` and `ILIKE` in memory: `%` stands for any characters, `_` for one; nothing else is special.

/// Whether the whole text fits the pattern, case by case.
pub fn like(text: &str, pattern: &str) -> bool {
    let (text, pattern): (Vec<char>, Vec<char>) = (text.chars().collect(), pattern.chars().collect());
    fits(&text, &pattern)
}

/// Whether the whole text fits the pattern once both are in lower case.
pub fn ilike(text: &str, pattern: &str) -> bool {
    like(&text.to_lowercase(), &pattern.to_lowercase())
}

/// Walks both once; on a mismatch the last `%` takes one more character.
fn fits(text: &[char], pattern: &[char]) -> bool {
    let (mut t, mut p) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('%') => {
                retry = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '_' || *c == text[t] => (t, p) = (t + 1, p + 1),
            _ => {
                let Some((percent, taken)) = retry else { return false };
                retry = Some((percent, taken + 1));
                (t, p) = (taken + 1, percent + 1);
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '%')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_is_any_text_and_underscore_one_character() {
        let cases = [
            ("", "", true),
            ("", "%", true),
            ("", "_", false),
            ("abc", "abc", true),
            ("abc", "ABC", false),
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "%b%", true),
            ("abc", "b", false),
            ("abc", "a_c", true),
            ("aé日", "a__", true),
            ("abcbc", "a%bc", true),
            ("a\nb", "a%b", true),
            ("a\nb", "a_b", true),
            ("a.c", "a.c", true),
            ("abc", "a.c", false),
            ("50%", "50\\%", false),
            ("mississippi", "m%iss%ip%i", true),
            ("mississippi", "m%iss%ix%i", false),
        ];
        for (text, pattern, expect) in cases {
            assert_eq!(like(text, pattern), expect, "{text} like {pattern}");
        }
        assert!(ilike("MiXeD é", "mixed É") && !ilike("abc", "B"));
    }

    #[test]
    fn a_pattern_of_many_percents_ends() {
        let text = "a".repeat(6000);
        assert!(!like(&text, &format!("{}b", "%a".repeat(100))));
    }
}
