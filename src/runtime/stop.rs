//! Stop strings: text is held back while it may be the beginning of one, so that none ever reaches the caller.

/// Holds back what may become a stop string.
#[derive(Debug)]
pub struct StopFilter {
    stops: Vec<String>,
    held: String,
    /// Bytes of `held` that were given out by the last call.
    given: usize,
}

impl StopFilter {
    /// A filter for `stops`, none of them empty. Texts of up to `max_text_bytes` at a time are taken without allocating.
    #[must_use]
    pub fn new(stops: &[String], max_text_bytes: usize) -> Self {
        let longest = stops.iter().map(String::len).max().unwrap_or(0);
        let held = String::with_capacity(longest.saturating_add(max_text_bytes));
        Self { stops: stops.to_vec(), held, given: 0 }
    }

    /// Takes more text. Gives what is safe to show and whether a stop string was met (then the text ends before it).
    pub fn push(&mut self, text: &str) -> (&str, bool) {
        self.held.drain(..self.given);
        self.held.push_str(text);
        let met = self.stops.iter().filter_map(|stop| self.held.find(stop.as_str())).min();
        self.given = met.unwrap_or_else(|| self.held.len() - self.pending());
        (&self.held[..self.given], met.is_some())
    }

    /// The end of generation: what was held back turned out to be text.
    pub fn flush(&mut self) -> &str {
        self.held.drain(..self.given);
        self.given = self.held.len();
        &self.held
    }

    /// Bytes at the end of `held` that are the beginning of some stop string.
    fn pending(&self) -> usize {
        let held = self.held.as_bytes();
        let longest = |stop: &String| {
            let most = held.len().min(stop.len() - 1);
            (1..=most).rev().find(|&n| held.ends_with(&stop.as_bytes()[..n])).unwrap_or(0)
        };
        self.stops.iter().map(longest).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stops: &[&str], pieces: &[&str]) -> (String, bool) {
        let stops: Vec<String> = stops.iter().map(|s| (*s).to_owned()).collect();
        let mut filter = StopFilter::new(&stops, 16);
        let mut out = String::new();
        for piece in pieces {
            let (text, met) = filter.push(piece);
            out.push_str(text);
            if met {
                return (out, true);
            }
        }
        out.push_str(filter.flush());
        (out, false)
    }

    #[test]
    fn a_stop_string_split_over_pieces_never_leaks() {
        assert_eq!(run(&["<END>"], &["abc<", "EN", "D>def"]), ("abc".to_owned(), true));
        assert_eq!(run(&["<END>"], &["abc<E", "NX"]), ("abc<ENX".to_owned(), false));
        assert_eq!(run(&["aab"], &["aa", "ab"]), ("a".to_owned(), true));
        assert_eq!(run(&["é!", "x"], &["caf", "é", "?"]), ("café?".to_owned(), false));
    }

    #[test]
    fn the_earliest_of_several_wins() {
        assert_eq!(run(&["ccc", "b"], &["aabccc"]), ("aa".to_owned(), true));
    }

    #[test]
    fn without_stops_all_text_passes_at_once() {
        let mut filter = StopFilter::new(&[], 16);
        assert_eq!(filter.push("héllo"), ("héllo", false));
        assert_eq!(filter.push(""), ("", false));
        assert_eq!(filter.flush(), "");
    }
}
