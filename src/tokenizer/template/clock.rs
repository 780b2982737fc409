//! Dates for templates: `strftime_now` over a local time that the caller gives.

/// A local time, to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalTime {
    /// Year.
    pub year: i32,
    /// Month, 1 to 12.
    pub month: u32,
    /// Day of the month, from 1.
    pub day: u32,
    /// Hour, 0 to 23.
    pub hour: u32,
    /// Minute.
    pub minute: u32,
    /// Second.
    pub second: u32,
}

impl LocalTime {
    /// The local time `seconds` after the beginning of 1970, where that was local midnight.
    #[must_use]
    pub fn from_seconds(seconds: i64) -> Self {
        let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        // Civil from days: years begin in March, eras have 400 years.
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let small = |n: i64| u32::try_from(n).unwrap_or(0);
        let year = year_of_era + 400 * era + i64::from(month >= 10);
        Self {
            year: i32::try_from(year).unwrap_or(i32::MAX),
            month: small(if month < 10 { month + 3 } else { month - 9 }),
            day: small(day_of_year - (153 * month + 2) / 5 + 1),
            hour: small(second / 3600),
            minute: small(second / 60 % 60),
            second: small(second % 60),
        }
    }

    /// This time by a format of C's `strftime`, in English; `None` for a directive that is not known.
    pub(super) fn format(&self, format: &str) -> Option<String> {
        let mut out = String::new();
        let mut chars = format.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            let mut directive = chars.next()?;
            let unpadded = directive == '-';
            if unpadded {
                directive = chars.next()?;
            }
            let piece = self.directive(directive)?;
            out.push_str(match unpadded {
                true if piece.len() > 1 => piece.trim_start_matches('0'),
                _ => &piece,
            });
        }
        Some(out)
    }

    fn directive(&self, directive: char) -> Option<String> {
        let weekday = DAYS[self.weekday()];
        let month = MONTHS.get(self.month.wrapping_sub(1) as usize)?;
        let hour12 = (self.hour + 11) % 12 + 1;
        Some(match directive {
            'Y' => self.year.to_string(),
            'y' => format!("{:02}", self.year.rem_euclid(100)),
            'm' => format!("{:02}", self.month),
            'd' => format!("{:02}", self.day),
            'e' => format!("{:2}", self.day),
            'B' => (*month).to_owned(),
            'b' | 'h' => month[..3].to_owned(),
            'A' => weekday.to_owned(),
            'a' => weekday[..3].to_owned(),
            'H' => format!("{:02}", self.hour),
            'I' => format!("{hour12:02}"),
            'M' => format!("{:02}", self.minute),
            'S' => format!("{:02}", self.second),
            'p' => if self.hour < 12 { "AM" } else { "PM" }.to_owned(),
            'j' => format!("{:03}", self.day_of_year()),
            'F' => self.format("%Y-%m-%d")?,
            'T' => self.format("%H:%M:%S")?,
            'D' => self.format("%m/%d/%y")?,
            'R' => self.format("%H:%M")?,
            'n' => "\n".to_owned(),
            't' => "\t".to_owned(),
            '%' => "%".to_owned(),
            _ => return None,
        })
    }

    fn is_leap(&self) -> bool {
        self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0)
    }

    fn day_of_year(&self) -> u32 {
        let before: u32 = LENGTHS.iter().take(self.month.saturating_sub(1) as usize).sum();
        before + self.day + u32::from(self.month > 2 && self.is_leap())
    }

    /// 0 for Sunday.
    fn weekday(&self) -> usize {
        let before = i64::from(self.year) - 1;
        let leap_days = before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400);
        let days = before * 365 + leap_days + i64::from(self.day_of_year());
        usize::try_from(days.rem_euclid(7)).unwrap_or(0)
    }
}

const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const LENGTHS: [u32; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_dates() {
        let date = |seconds| LocalTime::from_seconds(seconds).format("%F %T %A %j");
        assert_eq!(date(0).unwrap(), "1970-01-01 00:00:00 Thursday 001");
        assert_eq!(date(951_782_399).unwrap(), "2000-02-28 23:59:59 Monday 059");
        assert_eq!(date(951_868_800).unwrap(), "2000-03-01 00:00:00 Wednesday 061");
        assert_eq!(date(1_735_603_200).unwrap(), "2024-12-31 00:00:00 Tuesday 366");
        assert_eq!(date(-86_400).unwrap(), "1969-12-31 00:00:00 Wednesday 365");
    }

    #[test]
    fn directives_are_those_of_c() {
        let time = LocalTime { year: 2025, month: 7, day: 4, hour: 15, minute: 5, second: 9 };
        for (format, expected) in [
            ("%d %b %Y", "04 Jul 2025"),
            ("%B %-d, %y", "July 4, 25"),
            ("%a %I:%M %p", "Fri 03:05 PM"),
            ("%-H|%e|%%", "15| 4|%"),
        ] {
            assert_eq!(time.format(format).as_deref(), Some(expected), "{format}");
        }
        assert_eq!(time.format("%Q"), None);
        assert_eq!(time.format("%"), None);
    }
}
