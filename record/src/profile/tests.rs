//! Parses the profile into elements and attributes, and checks its rules.

use quick_xml::{Reader, events::BytesStart};

use super::*;

mod known;

/// An element with its attributes and children.
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

    /// Returns the element at a path of names.
    fn at(&self, path: &[&str]) -> &Element {
        path.iter().fold(self, |element, name| {
            let mut matches = element.children.iter().filter(|child| child.name == *name);
            matches.next().unwrap_or_else(|| panic!("no {name} in {}", element.name))
        })
    }

    fn attribute(&self, name: &str) -> &str {
        let entry = self.attributes.iter().find(|(key, _)| key == name);
        &entry.unwrap_or_else(|| panic!("no {name} in {self:?}")).1
    }

    fn names(&self) -> Vec<&str> {
        self.children.iter().map(|child| child.name.as_str()).collect()
    }

    fn values(&self) -> Vec<&str> {
        self.children.iter().map(|child| child.attribute("Value")).collect()
    }

    /// Collects all attributes of this name, with the names of their elements.
    fn all<'a>(&'a self, attribute: &str, values: &mut Vec<(&'a str, &'a str)>) {
        for child in &self.children {
            let attributes = child.attributes.iter().filter(|(key, _)| key == attribute);
            values.extend(attributes.map(|(_, value)| (child.name.as_str(), value.as_str())));
            child.all(attribute, values);
        }
    }
}

fn profile(events: Events) -> Element {
    profile_with(events, &ProviderSelection::default())
}

fn profile_with(events: Events, selection: &ProviderSelection) -> Element {
    document(events, selection, None)
}

fn document(events: Events, selection: &ProviderSelection, count: Option<BufferCount>) -> Element {
    let mut bytes = Vec::new();
    let size = BufferSize::new(512 << 10).expect("a size");
    wpr_profile(events, selection, size, count, &mut bytes).expect("written");
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
fn there_are_profiles_for_files_and_for_memory() {
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
fn buffers_keywords_and_stacks_are_as_requested() {
    let of = |events| {
        let document = profile(events);
        let profiles = document.at(&["WindowsPerformanceRecorder", "Profiles"]);
        let values = |path: &[&str]| profiles.at(path).values().join(" ");
        let caching = profiles.at(&["SystemCollector", "StackCaching"]);
        assert_eq!(caching.attribute("BucketCount"), "256");
        assert_eq!(caching.attribute("CacheSize"), "3072");
        let buffers = profiles.at(&["SystemCollector", "Buffers"]).attribute("Value");
        let size = profiles.at(&["SystemCollector", "BufferSize"]).attribute("Value");
        assert_eq!((size, buffers), ("512", "256"));
        (values(&["SystemProvider", "Keywords"]), values(&["SystemProvider", "Stacks"]))
    };
    let (keywords, stacks) = of(Events::default());
    assert_eq!(keywords, "ProcessThread Loader Handle");
    assert_eq!(stacks, "HandleCreate HandleClose HandleDuplicate");
    let all =
        Events { references: true, mappings: true, virtual_alloc: true, drop_close_stacks: true };
    let (keywords, stacks) = of(all);
    assert_eq!(keywords, "ProcessThread Loader Handle Object VAMap VirtualAllocation");
    assert_eq!(
        stacks,
        "HandleCreate HandleDuplicate ObjectCreate ObjectDelete ObjectReference \
         MapFile UnMapFile VirtualAllocation VirtualFree"
    );
}

#[test]
fn heaps_and_handles_of_gdi_and_user_have_separate_collectors() {
    let selection = ProviderSelection { heap_pids: vec![4711, 8], gdi_user: true, dot_net: false };
    let document = profile_with(Events::default(), &selection);
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
    assert_eq!(profiles.at(&["EventProvider", "Keywords"]).values(), ["0x30000000000"]);
    assert_eq!(profiles.at(&["EventProvider"]).attribute("NonPagedMemory"), "true");
    let stacks = profiles.at(&["SystemProvider", "Stacks"]).values();
    assert!(stacks.ends_with(&["HeapAllocation", "HeapReallocation", "HeapCreate"]), "{stacks:?}");
    let collectors = profiles.at(&["Profile", "Collectors"]);
    let order = ["SystemCollectorId", "EventCollectorId", "HeapEventCollectorId"];
    assert_eq!(collectors.names(), order);
    let heap = collectors.at(&["HeapEventCollectorId", "HeapEventProviders"]);
    assert_eq!(heap.values(), [profiles.at(&["HeapEventProvider"]).attribute("Id")]);
    let events = collectors.at(&["EventCollectorId", "EventProviders"]);
    assert_eq!(events.values(), [profiles.at(&["EventProvider"]).attribute("Id")]);
}

#[test]
fn a_collector_has_the_buffers_of_mso_or_as_many_as_are_given() {
    let selection = ProviderSelection { heap_pids: vec![4711], gdi_user: true, dot_net: false };
    let buffers = |count: Option<BufferCount>| {
        let document = document(Events::default(), &selection, count);
        let profiles = document.at(&["WindowsPerformanceRecorder", "Profiles"]);
        ["SystemCollector", "EventCollector", "HeapEventCollector"]
            .map(|collector| profiles.at(&[collector, "Buffers"]).attribute("Value").to_owned())
    };
    assert_eq!(buffers(None), ["256", "128", "768"]);
    let given = BufferCount::new(64).expect("a number of buffers");
    assert_eq!(buffers(Some(given)), ["64"; 3]);
}

#[test]
fn methods_of_dot_net_are_recorded_by_wprs_provider_beside_the_kernels() {
    let selection =
        ProviderSelection { gdi_user: true, dot_net: true, ..ProviderSelection::default() };
    let document = profile_with(Events::default(), &selection);
    let profiles = document.at(&["WindowsPerformanceRecorder", "Profiles"]);
    let mut providers = profiles.children.iter().filter(|child| child.name == "EventProvider");
    let dot_net = providers.next_back().expect("a provider");
    assert_eq!((dot_net.attribute("Name"), dot_net.attribute("Level")), ("DotNetProvider", "5"));
    assert_eq!(dot_net.names(), ["Keywords", "CaptureStateOnSave"]);
    assert_eq!(dot_net.at(&["Keywords"]).values(), ["0x20098"]);
    assert_eq!(dot_net.at(&["CaptureStateOnSave"]).values(), ["0x20118"]);
    let collectors = profiles.at(&["Profile", "Collectors"]);
    assert_eq!(collectors.names(), ["SystemCollectorId", "EventCollectorId"]);
    let ids = collectors.at(&["EventCollectorId", "EventProviders"]).values();
    assert_eq!(ids, [WIN32K_PROVIDER, DOT_NET_PROVIDER]);
}
