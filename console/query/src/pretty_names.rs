//! Process names that say more than the executable.
//!
//! Windows runs most of its services in processes called `svchost.exe` and names the service in the command line.
//! ETWAnalyzer has rules that rename four of them, and its users know these names; the rules here are the same.

/// The executable that all rules apply to.
const SERVICE_HOST: &str = "svchost.exe";

/// Text that a command line must contain, ignoring case, and the resulting name. The first matching rule wins.
const RULES: [(&str, &str); 4] = [
    ("-s EventLog", "svchost Event Log Service"),
    ("-s TermService", "svchost RDP Service"),
    ("-s Winmgmt", "svchost WMI Service"),
    ("LocalServiceNoNetworkFirewall", "svchost Firewall"),
];

/// Returns the better name of a process; `None` if the executable's name is the best.
pub fn pretty_name(executable: &str, command_line: &str) -> Option<&'static str> {
    if !is_service_host(executable) {
        return None;
    }
    let rule = RULES.into_iter().find(|(text, _)| contains(command_line, text));
    rule.map(|(_, name)| name)
}

/// Whether an executable hosts services.
pub fn is_service_host(executable: &str) -> bool {
    executable.eq_ignore_ascii_case(SERVICE_HOST)
}

/// Returns the command line option that names the hosted service, `-s Dnscache`, or else the group of services,
/// `-k netsvcs`.
pub fn hosted_service(command_line: &str) -> Option<String> {
    let value = |option: &str| {
        let mut words = command_line.split_ascii_whitespace();
        words.find(|word| word.eq_ignore_ascii_case(option))?;
        Some(format!("{option} {}", words.next()?))
    };
    value("-s").or_else(|| value("-k"))
}

/// Whether a text contains an ASCII part, ignoring case.
fn contains(text: &str, part: &str) -> bool {
    text.as_bytes().windows(part.len()).any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_host_goes_by_its_service() {
        for (command_line, expected) in [
            (r"C:\Windows\System32\svchost.exe -k NetworkService -s TermService", "RDP Service"),
            ("svchost.exe -k x -p -S EVENTLOG", "Event Log Service"),
            ("svchost.exe -k netsvcs -p -s Winmgmt", "WMI Service"),
            ("svchost.exe -k LocalServiceNoNetworkFirewall -p", "Firewall"),
            ("-s Winmgmt -s EventLog", "Event Log Service"), // the first rule, not the first word
        ] {
            let name = pretty_name("SvcHost.exe", command_line);
            assert_eq!(name, Some(format!("svchost {expected}").as_str()), "{command_line}");
        }
    }

    #[test]
    fn other_programs_and_other_services_keep_their_names() {
        assert_eq!(pretty_name("cmd.exe", "cmd.exe -s TermService"), None);
        assert_eq!(pretty_name("svchost.exe", "svchost.exe -k netsvcs -s Themes"), None);
        assert_eq!(pretty_name("svchost.exe", ""), None);
    }
}
