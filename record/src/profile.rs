//! The same recording as a profile for WPR, which is part of Windows.

use std::io::{self, Write};

use quick_xml::{
    Writer,
    events::{BytesDecl, Event},
};

use crate::options::{BufferCount, BufferSize, Events};

/// The name of the profile, behind `!` in `wpr -start FILE!NAME`.
pub const PROFILE_NAME: &str = "Handle";

/// WPR finds a profile by an id of its name, detail and logging mode (learn, "3. Profile Definitions").
const FILE_PROFILE: &str = "Handle.Verbose.File";
const MEMORY_PROFILE: &str = "Handle.Verbose.Memory";

const DESCRIPTION: &str = "Handles with stacks, for handlescope";

const COLLECTOR: &str = "SystemCollector_handlescope";
const PROVIDER: &str = "SystemProvider_handlescope";
const EVENT_COLLECTOR: &str = "EventCollector_handlescope";
const EVENT_PROVIDER: &str = "EventProvider_Win32k";
const HEAP_COLLECTOR: &str = "HeapEventCollector_handlescope";
const HEAP_PROVIDER: &str = "HeapEventProvider_handlescope";

/// Microsoft-Windows-Win32k with its keywords of GDI and USER handles (MSO, `Handles.wprp`).
const WIN32K: [(&str, &str); 4] = [
    ("Id", EVENT_PROVIDER),
    ("Name", "8c416c79-d49b-4f01-a467-e56d3aa8234c"),
    ("Level", "4"),
    ("Stack", "true"),
];
const WIN32K_HANDLES: &str = "0x30000000000";

/// Stacks that were seen before are written as a key (learn, `StackCaching`). The figures are those of MSO for
/// recordings with many stacks; the size is in KB.
const STACK_CACHING: [(&str, &str); 2] = [("BucketCount", "256"), ("CacheSize", "3072")];

/// What the merge adds: identities of images, without which no symbol is found, and what MSO has besides.
const CUSTOM_EVENTS: [&str; 4] = ["ImageId", "BuildInfo", "VolumeMapping", "EventMetadata"];

/// What a profile records besides the events of the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtherProviders {
    /// Process ids whose heaps are recorded.
    pub heap_pids: Vec<u32>,
    /// Handles of GDI and USER.
    pub gdi_user: bool,
}

/// Writes the profile, for a recording to a file and for one in memory.
///
/// The order of elements is that of learn, `WPRControlProfiles Schema`: collectors, providers, profiles, and behind
/// them what is merged.
///
/// # Errors
/// When `out` cannot be written.
pub fn wpr_profile(
    events: Events,
    others: &OtherProviders,
    size: BufferSize,
    count: BufferCount,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut xml = Writer::new_with_indent(&mut *out, b' ', 2);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("utf-8"), None)))?;
    let root = xml.create_element("WindowsPerformanceRecorder");
    let root = root.with_attributes([("Version", "1"), ("Author", "handlescope")]);
    root.write_inner_content(|xml| {
        xml.create_element("Profiles").write_inner_content(|xml| {
            let collectors = COLLECTORS.iter().filter(|collector| (collector.is_used)(others));
            for Collector { element, attributes, .. } in collectors.clone() {
                let collector =
                    xml.create_element(*element).with_attributes(attributes.iter().copied());
                collector.write_inner_content(|xml| buffers(xml, size, count))?;
            }
            provider(xml, events)?;
            other_providers(xml, others)?;
            profiles(xml, others)
        })?;
        merge(xml)
    })?;
    writeln!(out)
}

/// A collector, in the order of the schema.
struct Collector {
    element: &'static str,
    attributes: &'static [(&'static str, &'static str)],
    is_used: fn(&OtherProviders) -> bool,
}

static COLLECTORS: [Collector; 3] = [
    Collector {
        element: "SystemCollector",
        attributes: &[("Id", COLLECTOR), ("Name", "NT Kernel Logger")],
        is_used: |_| true,
    },
    Collector {
        element: "EventCollector",
        attributes: &[("Id", EVENT_COLLECTOR), ("Name", "handlescope events")],
        is_used: |others| others.gdi_user,
    },
    Collector {
        element: "HeapEventCollector",
        attributes: &[
            ("Id", HEAP_COLLECTOR),
            ("Name", "handlescope heap"),
            ("FileName", "handlescope-heap.etl"),
        ],
        is_used: |others| !others.heap_pids.is_empty(),
    },
];

fn buffers<W: Write>(xml: &mut Writer<W>, size: BufferSize, count: BufferCount) -> io::Result<()> {
    value(xml, "BufferSize", &size.kib().to_string())?;
    value(xml, "Buffers", &count.get().to_string())?;
    xml.create_element("StackCaching").with_attributes(STACK_CACHING).write_empty().map(drop)
}

/// Handles of GDI and USER, and heaps (learn, `HeapEventProvider`).
fn other_providers<W: Write>(xml: &mut Writer<W>, others: &OtherProviders) -> io::Result<()> {
    if others.gdi_user {
        xml.create_element("EventProvider").with_attributes(WIN32K).write_inner_content(|xml| {
            xml.create_element("Keywords")
                .write_inner_content(|xml| value(xml, "Keyword", WIN32K_HANDLES))
                .map(drop)
        })?;
    }
    if !others.heap_pids.is_empty() {
        let provider =
            xml.create_element("HeapEventProvider").with_attribute(("Id", HEAP_PROVIDER));
        provider.write_inner_content(|xml| {
            let mut pids = others.heap_pids.iter();
            xml.create_element("HeapProcessIds").write_inner_content(|xml| {
                pids.try_for_each(|pid| value(xml, "HeapProcessId", &pid.to_string()))
            })?;
            Ok(())
        })?;
    }
    Ok(())
}

fn provider<W: Write>(xml: &mut Writer<W>, events: Events) -> io::Result<()> {
    let provider = xml.create_element("SystemProvider").with_attribute(("Id", PROVIDER));
    provider.write_inner_content(|xml| {
        let mut keywords = events.families().map(|family| family.keyword);
        xml.create_element("Keywords")
            .write_inner_content(|xml| keywords.try_for_each(|name| value(xml, "Keyword", name)))?;
        let mut stacks = events.stacks();
        xml.create_element("Stacks").write_inner_content(|xml| {
            stacks.try_for_each(|event| value(xml, "Stack", event.name))
        })?;
        Ok(())
    })?;
    Ok(())
}

fn profiles<W: Write>(xml: &mut Writer<W>, others: &OtherProviders) -> io::Result<()> {
    let common = [("Name", PROFILE_NAME), ("Description", DESCRIPTION), ("DetailLevel", "Verbose")];
    let profile = xml.create_element("Profile").with_attribute(("Id", FILE_PROFILE));
    let profile = profile.with_attributes(common).with_attribute(("LoggingMode", "File"));
    profile.write_inner_content(|xml| {
        xml.create_element("Collectors").write_inner_content(|xml| {
            let kernel = ("SystemCollectorId", COLLECTOR, "SystemProviderId", PROVIDER);
            provided(xml, kernel, |xml, id, provider| value(xml, id, provider))?;
            if others.gdi_user {
                let events =
                    ("EventCollectorId", EVENT_COLLECTOR, "EventProviderId", EVENT_PROVIDER);
                provided(xml, events, |xml, id, provider| {
                    let providers = xml.create_element("EventProviders");
                    providers.write_inner_content(|xml| value(xml, id, provider)).map(drop)
                })?;
            }
            if !others.heap_pids.is_empty() {
                let heap =
                    ("HeapEventCollectorId", HEAP_COLLECTOR, "HeapEventProviderId", HEAP_PROVIDER);
                provided(xml, heap, |xml, id, provider| {
                    let providers = xml.create_element("HeapEventProviders");
                    providers.write_inner_content(|xml| value(xml, id, provider)).map(drop)
                })?;
            }
            Ok(())
        })?;
        Ok(())
    })?;
    let profile = xml.create_element("Profile").with_attribute(("Id", MEMORY_PROFILE));
    let profile = profile.with_attributes(common).with_attribute(("LoggingMode", "Memory"));
    profile.with_attribute(("Base", FILE_PROFILE)).write_empty()?;
    Ok(())
}

/// A collector of a profile, and what `write` makes of its provider.
fn provided<W: Write>(
    xml: &mut Writer<W>,
    (element, collector, id, provider): (&str, &str, &str, &str),
    write: impl FnOnce(&mut Writer<W>, &str, &str) -> io::Result<()>,
) -> io::Result<()> {
    let collector = xml.create_element(element).with_attribute(("Value", collector));
    collector.write_inner_content(|xml| write(xml, id, provider)).map(drop)
}

fn merge<W: Write>(xml: &mut Writer<W>) -> io::Result<()> {
    xml.create_element("TraceMergeProperties").write_inner_content(|xml| {
        let name = "TraceMerge_handlescope";
        let property = xml.create_element("TraceMergeProperty");
        property.with_attributes([("Id", name), ("Name", name)]).write_inner_content(|xml| {
            value(xml, "DeletePreMergedTraceFiles", "true")?;
            value(xml, "FileCompression", "true")?;
            xml.create_element("CustomEvents").write_inner_content(|xml| {
                CUSTOM_EVENTS.into_iter().try_for_each(|name| value(xml, "CustomEvent", name))
            })?;
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

/// `<Name Value="…"/>`
fn value<W: Write>(xml: &mut Writer<W>, name: &str, value: &str) -> io::Result<()> {
    xml.create_element(name).with_attribute(("Value", value)).write_empty()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use quick_xml::{Reader, events::BytesStart};

    use super::*;

    /// An element with its attributes and what is in it.
    #[derive(Debug, Default)]
    struct Element {
        name: String,
        attributes: Vec<(String, String)>,
        children: Vec<Element>,
    }

    impl Element {
        fn new(tag: &BytesStart<'_>) -> Element {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
            let attributes = tag.attributes().map(|attribute| {
                let attribute = attribute.expect("an attribute");
                (text(attribute.key.as_ref()), text(&attribute.value))
            });
            let (name, attributes) = (text(tag.name().as_ref()), attributes.collect());
            Element { name, attributes, children: Vec::new() }
        }

        /// What is in the element that these names lead to.
        fn at(&self, path: &[&str]) -> &Element {
            path.iter().fold(self, |element, name| {
                let mut found = element.children.iter().filter(|child| child.name == *name);
                found.next().unwrap_or_else(|| panic!("no {name} in {}", element.name))
            })
        }

        fn attribute(&self, name: &str) -> &str {
            let found = self.attributes.iter().find(|(key, _)| key == name);
            &found.unwrap_or_else(|| panic!("no {name} in {self:?}")).1
        }

        fn names(&self) -> Vec<&str> {
            self.children.iter().map(|child| child.name.as_str()).collect()
        }

        fn values(&self) -> Vec<&str> {
            self.children.iter().map(|child| child.attribute("Value")).collect()
        }

        /// Every attribute of this name, with the name of its element.
        fn all<'a>(&'a self, attribute: &str, found: &mut Vec<(&'a str, &'a str)>) {
            for child in &self.children {
                let own = child.attributes.iter().filter(|(key, _)| key == attribute);
                found.extend(own.map(|(_, value)| (child.name.as_str(), value.as_str())));
                child.all(attribute, found);
            }
        }
    }

    fn profile(events: Events) -> Element {
        profile_with(events, &OtherProviders::default())
    }

    fn profile_with(events: Events, others: &OtherProviders) -> Element {
        let mut bytes = Vec::new();
        let (size, count) = (BufferSize::new(512 << 10).expect("a size"), BufferCount::default());
        wpr_profile(events, others, size, count, &mut bytes).expect("written");
        let text = String::from_utf8(bytes).expect("UTF-8");
        assert!(text.starts_with("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<Windows"), "{text}");
        let mut reader = Reader::from_str(&text);
        let mut open = vec![Element::default()];
        loop {
            match reader.read_event().expect("XML") {
                Event::Start(tag) => open.push(Element::new(&tag)),
                Event::Empty(tag) => {
                    open.last_mut().expect("an element").children.push(Element::new(&tag));
                }
                Event::End(_) => {
                    let done = open.pop().expect("an element");
                    open.last_mut().expect("its parent").children.push(done);
                }
                Event::Eof => break,
                _ => {}
            }
        }
        assert_eq!(open.len(), 1, "every element ends");
        open.remove(0)
    }

    #[test]
    fn elements_stand_in_the_order_of_the_schema() {
        let document = profile(Events::default());
        let root = document.at(&["WindowsPerformanceRecorder"]);
        assert_eq!(root.attribute("Version"), "1");
        assert_eq!(root.names(), ["Profiles", "TraceMergeProperties"]);
        let profiles = root.at(&["Profiles"]);
        let order = ["SystemCollector", "SystemProvider", "Profile", "Profile"];
        assert_eq!(profiles.names(), order);
        let collector = profiles.at(&["SystemCollector"]);
        assert_eq!(collector.names(), ["BufferSize", "Buffers", "StackCaching"]);
        assert_eq!(profiles.at(&["SystemProvider"]).names(), ["Keywords", "Stacks"]);
        let merge = root.at(&["TraceMergeProperties", "TraceMergeProperty"]);
        let order = ["DeletePreMergedTraceFiles", "FileCompression", "CustomEvents"];
        assert_eq!(merge.names(), order);
        assert_eq!(merge.at(&["CustomEvents"]).values(), CUSTOM_EVENTS);
    }

    #[test]
    fn ids_occur_once_and_every_reference_has_its_id() {
        let document = profile(Events::default());
        let (mut ids, mut bases) = (Vec::new(), Vec::new());
        document.all("Id", &mut ids);
        document.all("Base", &mut bases);
        let mut once: Vec<&str> = ids.iter().map(|(_, id)| *id).collect();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), ids.len(), "{ids:?}");
        assert!(once.iter().all(|id| !id.is_empty() && !id.contains([':', ' '])), "{ids:?}");
        assert_eq!(bases, [("Profile", FILE_PROFILE)]);
        let profiles = document.at(&["WindowsPerformanceRecorder", "Profiles"]);
        let collector = profiles.at(&["Profile", "Collectors", "SystemCollectorId"]);
        let provider = collector.at(&["SystemProviderId"]);
        for (kind, id) in [
            ("SystemCollector", collector.attribute("Value")),
            ("SystemProvider", provider.attribute("Value")),
            ("Profile", FILE_PROFILE),
        ] {
            assert!(ids.contains(&(kind, id)), "{kind} {id}: {ids:?}");
        }
    }

    #[test]
    fn there_is_a_profile_for_files_and_one_for_memory() {
        let document = profile(Events::default());
        let profiles = document.at(&["WindowsPerformanceRecorder", "Profiles"]);
        let modes: Vec<&str> = profiles
            .children
            .iter()
            .filter(|child| child.name == "Profile")
            .map(|profile| {
                let mode = profile.attribute("LoggingMode");
                let detail = profile.attribute("DetailLevel");
                assert_eq!(profile.attribute("Id"), format!("{PROFILE_NAME}.{detail}.{mode}"));
                assert_eq!(profile.attribute("Name"), PROFILE_NAME);
                assert!(!profile.attribute("Description").is_empty());
                mode
            })
            .collect();
        assert_eq!(modes, ["File", "Memory"]);
    }

    #[test]
    fn buffers_keywords_and_stacks_are_those_that_were_asked_for() {
        let of = |events| {
            let document = profile(events);
            let profiles = document.at(&["WindowsPerformanceRecorder", "Profiles"]);
            let values = |path: &[&str]| profiles.at(path).values().join(" ");
            let caching = profiles.at(&["SystemCollector", "StackCaching"]);
            assert_eq!(caching.attribute("BucketCount"), "256");
            assert_eq!(caching.attribute("CacheSize"), "3072");
            let buffers = profiles.at(&["SystemCollector", "Buffers"]).attribute("Value");
            let size = profiles.at(&["SystemCollector", "BufferSize"]).attribute("Value");
            assert_eq!((size, buffers), ("512", "128"));
            (values(&["SystemProvider", "Keywords"]), values(&["SystemProvider", "Stacks"]))
        };
        let (keywords, stacks) = of(Events::default());
        assert_eq!(keywords, "ProcessThread Loader Handle");
        assert_eq!(stacks, "HandleCreate HandleClose HandleDuplicate");
        let all = Events {
            references: true,
            mappings: true,
            virtual_alloc: true,
            drop_close_stacks: true,
        };
        let (keywords, stacks) = of(all);
        assert_eq!(keywords, "ProcessThread Loader Handle Object VAMap VirtualAllocation");
        assert_eq!(
            stacks,
            "HandleCreate HandleDuplicate ObjectCreate ObjectDelete ObjectReference \
             ObjectDeReference MapFile UnMapFile VirtualAllocation VirtualFree"
        );
    }

    #[test]
    fn heaps_and_handles_of_gdi_and_user_have_collectors_of_their_own() {
        let others = OtherProviders { heap_pids: vec![4711, 8], gdi_user: true };
        let document = profile_with(Events::default(), &others);
        let profiles = document.at(&["WindowsPerformanceRecorder", "Profiles"]);
        let order = [
            "SystemCollector",
            "EventCollector",
            "HeapEventCollector",
            "SystemProvider",
            "EventProvider",
            "HeapEventProvider",
            "Profile",
            "Profile",
        ];
        assert_eq!(profiles.names(), order);
        let pids = profiles.at(&["HeapEventProvider", "HeapProcessIds"]).values();
        assert_eq!(pids, ["4711", "8"]);
        assert_eq!(profiles.at(&["EventProvider", "Keywords"]).values(), [WIN32K_HANDLES]);
        let collectors = profiles.at(&["Profile", "Collectors"]);
        let order = ["SystemCollectorId", "EventCollectorId", "HeapEventCollectorId"];
        assert_eq!(collectors.names(), order);
        let heap = collectors.at(&["HeapEventCollectorId", "HeapEventProviders"]);
        assert_eq!(heap.values(), [profiles.at(&["HeapEventProvider"]).attribute("Id")]);
        let events = collectors.at(&["EventCollectorId", "EventProviders"]);
        assert_eq!(events.values(), [profiles.at(&["EventProvider"]).attribute("Id")]);
        let collector = profiles.at(&["HeapEventCollector"]);
        assert_eq!(collector.names(), ["BufferSize", "Buffers", "StackCaching"]);
        assert!(!collector.attribute("FileName").is_empty());
    }
}
