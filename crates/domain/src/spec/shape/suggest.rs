//! The word someone probably meant.

/// The candidate nearest to `word`, if one is near enough to be a slip of the hand or another way of writing.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    if word.len() > 100 {
        return None;
    }
    let wanted = folded(word);
    let allowed = (wanted.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&wanted, &folded(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= allowed && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Whether the word is one slip of the hand away from a candidate.
pub(super) fn is_slip<'c>(word: &str, mut candidates: impl Iterator<Item = &'c str>) -> bool {
    let wanted = folded(word);
    word.len() <= 100 && candidates.any(|candidate| strsim::osa_distance(&wanted, &folded(candidate)) <= 1)
}

/// Without case and separators, so that `experimentName` meets `experiment_name`.
pub(super) fn folded(word: &str) -> String {
    word.chars().filter(|c| *c != '_' && *c != '-').flat_map(char::to_lowercase).collect()
}
