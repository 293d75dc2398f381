//! Time zones by both of their names: IANA's (`Europe/Berlin`) and Windows' (`W. Europe Standard Time`).
//!
//! The rules of the zones are data inside the binary, so that the same file means the same times on every machine.

use crate::spec::shape::nearest;
use chrono_tz::{TZ_VARIANTS, Tz};

/// The zone of a name, in any case; otherwise what is like it.
pub(super) fn parse(name: &str) -> Result<Tz, Option<&'static str>> {
    let name = name.trim();
    let windows = WINDOWS.iter().find(|(windows, _)| windows.eq_ignore_ascii_case(name));
    if let Some((_, zone)) = windows {
        return Ok(*zone);
    }
    let found = TZ_VARIANTS.iter().find(|zone| zone.name().eq_ignore_ascii_case(name));
    found.copied().ok_or_else(|| like(name))
}

/// The known name nearest to a wrong one; a city alone is enough to be understood.
fn like(name: &str) -> Option<&'static str> {
    let known = || WINDOWS.iter().map(|(name, _)| *name).chain(TZ_VARIANTS.iter().map(|zone| zone.name()));
    let city = |known: &&str| known.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(name));
    known().find(city).or_else(|| nearest(name, known()))
}

/// Windows' names and the zone each stands for, as Unicode's CLDR has them.
const WINDOWS: &[(&str, Tz)] = &[
    ("AUS Central Standard Time", Tz::Australia__Darwin),
    ("AUS Eastern Standard Time", Tz::Australia__Sydney),
    ("Afghanistan Standard Time", Tz::Asia__Kabul),
    ("Alaskan Standard Time", Tz::America__Anchorage),
    ("Alberta Standard Time", Tz::America__Edmonton),
    ("Aleutian Standard Time", Tz::America__Adak),
    ("Altai Standard Time", Tz::Asia__Barnaul),
    ("Arab Standard Time", Tz::Asia__Riyadh),
    ("Arabian Standard Time", Tz::Asia__Dubai),
    ("Arabic Standard Time", Tz::Asia__Baghdad),
    ("Argentina Standard Time", Tz::America__Buenos_Aires),
    ("Astrakhan Standard Time", Tz::Europe__Astrakhan),
    ("Atlantic Standard Time", Tz::America__Halifax),
    ("Aus Central W. Standard Time", Tz::Australia__Eucla),
    ("Azerbaijan Standard Time", Tz::Asia__Baku),
    ("Azores Standard Time", Tz::Atlantic__Azores),
    ("Bahia Standard Time", Tz::America__Bahia),
    ("Bangladesh Standard Time", Tz::Asia__Dhaka),
    ("Belarus Standard Time", Tz::Europe__Minsk),
    ("Bougainville Standard Time", Tz::Pacific__Bougainville),
    ("British Columbia Standard Time", Tz::America__Vancouver),
    ("Canada Central Standard Time", Tz::America__Regina),
    ("Cape Verde Standard Time", Tz::Atlantic__Cape_Verde),
    ("Caucasus Standard Time", Tz::Asia__Yerevan),
    ("Cen. Australia Standard Time", Tz::Australia__Adelaide),
    ("Central America Standard Time", Tz::America__Guatemala),
    ("Central Asia Standard Time", Tz::Asia__Bishkek),
    ("Central Brazilian Standard Time", Tz::America__Cuiaba),
    ("Central Europe Standard Time", Tz::Europe__Budapest),
    ("Central European Standard Time", Tz::Europe__Warsaw),
    ("Central Pacific Standard Time", Tz::Pacific__Guadalcanal),
    ("Central Standard Time", Tz::America__Chicago),
    ("Central Standard Time (Mexico)", Tz::America__Mexico_City),
    ("Chatham Islands Standard Time", Tz::Pacific__Chatham),
    ("China Standard Time", Tz::Asia__Shanghai),
    ("Cuba Standard Time", Tz::America__Havana),
    ("Dateline Standard Time", Tz::Etc__GMTPlus12),
    ("E. Africa Standard Time", Tz::Africa__Nairobi),
    ("E. Australia Standard Time", Tz::Australia__Brisbane),
    ("E. Europe Standard Time", Tz::Europe__Chisinau),
    ("E. South America Standard Time", Tz::America__Sao_Paulo),
    ("Easter Island Standard Time", Tz::Pacific__Easter),
    ("Eastern Standard Time", Tz::America__New_York),
    ("Eastern Standard Time (Mexico)", Tz::America__Cancun),
    ("Egypt Standard Time", Tz::Africa__Cairo),
    ("Ekaterinburg Standard Time", Tz::Asia__Yekaterinburg),
    ("FLE Standard Time", Tz::Europe__Kiev),
    ("Fiji Standard Time", Tz::Pacific__Fiji),
    ("GMT Standard Time", Tz::Europe__London),
    ("GTB Standard Time", Tz::Europe__Bucharest),
    ("Georgian Standard Time", Tz::Asia__Tbilisi),
    ("Greenland Standard Time", Tz::America__Godthab),
    ("Greenwich Standard Time", Tz::Atlantic__Reykjavik),
    ("Haiti Standard Time", Tz::America__PortauPrince),
    ("Hawaiian Standard Time", Tz::Pacific__Honolulu),
    ("India Standard Time", Tz::Asia__Calcutta),
    ("Iran Standard Time", Tz::Asia__Tehran),
    ("Israel Standard Time", Tz::Asia__Jerusalem),
    ("Jordan Standard Time", Tz::Asia__Amman),
    ("Kaliningrad Standard Time", Tz::Europe__Kaliningrad),
    ("Kamchatka Standard Time", Tz::Asia__Kamchatka),
    ("Korea Standard Time", Tz::Asia__Seoul),
    ("Libya Standard Time", Tz::Africa__Tripoli),
    ("Line Islands Standard Time", Tz::Pacific__Kiritimati),
    ("Lord Howe Standard Time", Tz::Australia__Lord_Howe),
    ("Magadan Standard Time", Tz::Asia__Magadan),
    ("Magallanes Standard Time", Tz::America__Punta_Arenas),
    ("Manitoba Standard Time", Tz::America__Winnipeg),
    ("Marquesas Standard Time", Tz::Pacific__Marquesas),
    ("Mauritius Standard Time", Tz::Indian__Mauritius),
    ("Mid-Atlantic Standard Time", Tz::Etc__GMTPlus2),
    ("Middle East Standard Time", Tz::Asia__Beirut),
    ("Montevideo Standard Time", Tz::America__Montevideo),
    ("Morocco Standard Time", Tz::Africa__Casablanca),
    ("Mountain Standard Time", Tz::America__Denver),
    ("Mountain Standard Time (Mexico)", Tz::America__Mazatlan),
    ("Myanmar Standard Time", Tz::Asia__Rangoon),
    ("N. Central Asia Standard Time", Tz::Asia__Novosibirsk),
    ("Namibia Standard Time", Tz::Africa__Windhoek),
    ("Nepal Standard Time", Tz::Asia__Katmandu),
    ("New Zealand Standard Time", Tz::Pacific__Auckland),
    ("Newfoundland Standard Time", Tz::America__St_Johns),
    ("Norfolk Standard Time", Tz::Pacific__Norfolk),
    ("North Asia East Standard Time", Tz::Asia__Irkutsk),
    ("North Asia Standard Time", Tz::Asia__Krasnoyarsk),
    ("North Korea Standard Time", Tz::Asia__Pyongyang),
    ("Omsk Standard Time", Tz::Asia__Omsk),
    ("Pacific SA Standard Time", Tz::America__Santiago),
    ("Pacific Standard Time", Tz::America__Los_Angeles),
    ("Pacific Standard Time (Mexico)", Tz::America__Tijuana),
    ("Pakistan Standard Time", Tz::Asia__Karachi),
    ("Paraguay Standard Time", Tz::America__Asuncion),
    ("Qyzylorda Standard Time", Tz::Asia__Qyzylorda),
    ("Romance Standard Time", Tz::Europe__Paris),
    ("Russia Time Zone 10", Tz::Asia__Srednekolymsk),
    ("Russia Time Zone 11", Tz::Asia__Kamchatka),
    ("Russia Time Zone 3", Tz::Europe__Samara),
    ("Russian Standard Time", Tz::Europe__Moscow),
    ("SA Eastern Standard Time", Tz::America__Cayenne),
    ("SA Pacific Standard Time", Tz::America__Bogota),
    ("SA Western Standard Time", Tz::America__La_Paz),
    ("SE Asia Standard Time", Tz::Asia__Bangkok),
    ("Saint Pierre Standard Time", Tz::America__Miquelon),
    ("Sakhalin Standard Time", Tz::Asia__Sakhalin),
    ("Samoa Standard Time", Tz::Pacific__Apia),
    ("Sao Tome Standard Time", Tz::Africa__Sao_Tome),
    ("Saratov Standard Time", Tz::Europe__Saratov),
    ("Singapore Standard Time", Tz::Asia__Singapore),
    ("South Africa Standard Time", Tz::Africa__Johannesburg),
    ("South Sudan Standard Time", Tz::Africa__Juba),
    ("Sri Lanka Standard Time", Tz::Asia__Colombo),
    ("Sudan Standard Time", Tz::Africa__Khartoum),
    ("Syria Standard Time", Tz::Asia__Damascus),
    ("Taipei Standard Time", Tz::Asia__Taipei),
    ("Tasmania Standard Time", Tz::Australia__Hobart),
    ("Tocantins Standard Time", Tz::America__Araguaina),
    ("Tokyo Standard Time", Tz::Asia__Tokyo),
    ("Tomsk Standard Time", Tz::Asia__Tomsk),
    ("Tonga Standard Time", Tz::Pacific__Tongatapu),
    ("Transbaikal Standard Time", Tz::Asia__Chita),
    ("Turkey Standard Time", Tz::Europe__Istanbul),
    ("Turks And Caicos Standard Time", Tz::America__Grand_Turk),
    ("US Eastern Standard Time", Tz::America__Indianapolis),
    ("US Mountain Standard Time", Tz::America__Phoenix),
    ("UTC", Tz::UTC),
    ("UTC+12", Tz::Etc__GMTMinus12),
    ("UTC+13", Tz::Etc__GMTMinus13),
    ("UTC-02", Tz::Etc__GMTPlus2),
    ("UTC-08", Tz::Etc__GMTPlus8),
    ("UTC-09", Tz::Etc__GMTPlus9),
    ("UTC-11", Tz::Etc__GMTPlus11),
    ("Ulaanbaatar Standard Time", Tz::Asia__Ulaanbaatar),
    ("Venezuela Standard Time", Tz::America__Caracas),
    ("Vladivostok Standard Time", Tz::Asia__Vladivostok),
    ("Volgograd Standard Time", Tz::Europe__Volgograd),
    ("W. Australia Standard Time", Tz::Australia__Perth),
    ("W. Central Africa Standard Time", Tz::Africa__Lagos),
    ("W. Europe Standard Time", Tz::Europe__Berlin),
    ("W. Mongolia Standard Time", Tz::Asia__Hovd),
    ("West Asia Standard Time", Tz::Asia__Tashkent),
    ("West Bank Standard Time", Tz::Asia__Hebron),
    ("West Pacific Standard Time", Tz::Pacific__Port_Moresby),
    ("Yakutsk Standard Time", Tz::Asia__Yakutsk),
    ("Yukon Standard Time", Tz::America__Whitehorse),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_found_by_either_name_and_a_wrong_one_finds_what_is_like_it() {
        for (name, zone) in [
            ("UTC", Tz::UTC),
            ("utc", Tz::UTC),
            ("Pacific Standard Time", Tz::America__Los_Angeles),
            ("pacific standard time", Tz::America__Los_Angeles),
            ("W. Europe Standard Time", Tz::Europe__Berlin),
            ("Europe/Berlin", Tz::Europe__Berlin),
            ("europe/berlin", Tz::Europe__Berlin),
            ("UTC-11", Tz::Etc__GMTPlus11),
        ] {
            assert_eq!(parse(name), Ok(zone), "{name}");
        }
        for (name, like) in [
            ("Europe/Berlim", Some("Europe/Berlin")),
            ("Berlin", Some("Europe/Berlin")),
            ("Pacific Standart Time", Some("Pacific Standard Time")),
            ("qqq", None),
        ] {
            assert_eq!(parse(name), Err(like), "{name}");
        }
    }
}
