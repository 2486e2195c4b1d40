//! Recording with a profile for WPR, which is part of Windows.

use std::io::{self, Write};

use quick_xml::{
    Writer,
    events::{BytesDecl, Event},
};

use crate::{
    family::OBJECT_DEREFERENCE,
    options::{BufferCount, BufferSize, Events},
};

/// The name of the profile, as in `wpr -start FILE!NAME`.
pub const PROFILE_NAME: &str = "Handle";

/// WPR finds a profile by an id made of its name, detail level and logging mode (learn, "3. Profile Definitions").
const FILE_PROFILE: &str = "Handle.Verbose.File";
const MEMORY_PROFILE: &str = "Handle.Verbose.Memory";

const DESCRIPTION: &str = "Handles with stacks, for handlescope";

const COLLECTOR: &str = "SystemCollector_handlescope";
const PROVIDER: &str = "SystemProvider_handlescope";
const EVENT_COLLECTOR: &str = "EventCollector_handlescope";
const WIN32K_PROVIDER: &str = "EventProvider_Win32k";
const DOT_NET_PROVIDER: &str = "EventProvider_DotNet";
const HEAP_COLLECTOR: &str = "HeapEventCollector_handlescope";
const HEAP_PROVIDER: &str = "HeapEventProvider_handlescope";

/// Microsoft-Windows-Win32k with the keywords for GDI and USER handles (MSO, `Handles.wprp`).
const WIN32K: [(&str, &str); 5] = [
    ("Id", WIN32K_PROVIDER),
    ("Name", "8c416c79-d49b-4f01-a467-e56d3aa8234c"),
    ("Level", "4"),
    ("Stack", "true"),
    ("NonPagedMemory", "true"),
];
const WIN32K_KEYWORDS: [(&str, &str); 1] = [("Keywords", "0x30000000000")];

/// WPR's own provider, which means .NET's runtime while recording and its rundown when saving. The keywords are those
/// of WPR (MSO, `CLR.wprp`): Loader, JIT, EndEnumeration, then Loader, JIT, EndRundown, and for both the maps from IL
/// to code. WPR makes NGEN PDBs, so the rundown need not name the methods of native images.
const DOT_NET: [(&str, &str); 4] = [
    ("Id", DOT_NET_PROVIDER),
    ("Name", "DotNetProvider"),
    ("NonPagedMemory", "true"),
    ("Level", "5"),
];
const DOT_NET_KEYWORDS: [(&str, &str); 2] =
    [("Keywords", "0x20098"), ("CaptureStateOnSave", "0x20118")];

/// Stacks of heaps. They are requested from the kernel's provider (MSO, `Heap.wprp`); without them, no leaked block has
/// its code.
const HEAP_STACKS: [&str; 3] = ["HeapAllocation", "HeapReallocation", "HeapCreate"];

/// Repeated stacks are written as a key (learn, `StackCaching`). The numbers are those of MSO for recordings with many
/// stacks; the size is in KB.
const STACK_CACHING: [(&str, &str); 2] = [("BucketCount", "256"), ("CacheSize", "3072")];

/// Events added by the merge: identities of images, without which no symbols are found, and what else MSO adds.
const CUSTOM_EVENTS: [&str; 4] = ["ImageId", "BuildInfo", "VolumeMapping", "EventMetadata"];

/// Providers of a profile other than the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderSelection {
    /// Process ids whose heaps are recorded.
    pub heap_pids: Vec<u32>,
    /// Whether to record handles of GDI and USER.
    pub gdi_user: bool,
    /// Whether to record the names of .NET methods.
    pub dot_net: bool,
}

impl ProviderSelection {
    /// Returns the ids of the selected providers that log manifest-based events.
    fn event_providers(&self) -> impl Iterator<Item = &'static str> + Clone {
        let providers = [(self.gdi_user, WIN32K_PROVIDER), (self.dot_net, DOT_NET_PROVIDER)];
        providers.into_iter().filter_map(|(is_recorded, id)| is_recorded.then_some(id))
    }
}

/// Writes the profile, both for recording to a file and in memory. Without a `count`, each collector has as many
/// buffers as in MSO.
///
/// The order of elements follows learn, `WPRControlProfiles Schema`: collectors, providers, profiles, and then what is
/// merged.
///
/// # Errors
/// If `out` cannot be written.
pub fn wpr_profile(
    events: Events,
    selection: &ProviderSelection,
    size: BufferSize,
    count: Option<BufferCount>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut xml = Writer::new_with_indent(&mut *out, b' ', 2);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("utf-8"), None)))?;
    let root = xml.create_element("WindowsPerformanceRecorder");
    let root = root.with_attributes([("Version", "1"), ("Author", "handlescope")]);
    root.write_inner_content(|xml| {
        xml.create_element("Profiles").write_inner_content(|xml| {
            let collectors = COLLECTORS.iter().filter(|collector| (collector.is_used)(selection));
            for collector in collectors {
                let count = count.map_or(collector.buffers, BufferCount::get);
                let attributes = collector.attributes.iter().copied();
                let element = xml.create_element(collector.element).with_attributes(attributes);
                element.write_inner_content(|xml| {
                    value(xml, "BufferSize", &size.kib().to_string())?;
                    value(xml, "Buffers", &count.to_string())?;
                    if collector.caches_stacks { stack_caching(xml) } else { Ok(()) }
                })?;
            }
            provider(xml, events, selection)?;
            selected_providers(xml, selection)?;
            profiles(xml, selection)
        })?;
        merge(xml)
    })?;
    writeln!(out)
}

/// A collector, in the order of the schema.
struct ProfileCollector {
    element: &'static str,
    attributes: &'static [(&'static str, &'static str)],
    /// Default number of buffers (MSO, `Handles.wprp` and `Heap.wprp`).
    buffers: u32,
    caches_stacks: bool,
    is_used: fn(&ProviderSelection) -> bool,
}

static COLLECTORS: [ProfileCollector; 3] = [
    ProfileCollector {
        element: "SystemCollector",
        attributes: &[("Id", COLLECTOR), ("Name", "NT Kernel Logger")],
        buffers: BufferCount::KERNEL.get(),
        caches_stacks: true,
        is_used: |_| true,
    },
    ProfileCollector {
        element: "EventCollector",
        attributes: &[("Id", EVENT_COLLECTOR), ("Name", "handlescope events")],
        buffers: 128,
        caches_stacks: true,
        is_used: |selection| selection.event_providers().next().is_some(),
    },
    ProfileCollector {
        element: "HeapEventCollector",
        attributes: &[("Id", HEAP_COLLECTOR), ("Name", "handlescope heap")],
        buffers: 768,
        // WPR accepts it from 10.0.19559 on (MSO, `Heap.19559.wprp`), but the one in Windows 10 is older.
        caches_stacks: false,
        is_used: |selection| !selection.heap_pids.is_empty(),
    },
];

fn stack_caching<W: Write>(xml: &mut Writer<W>) -> io::Result<()> {
    xml.create_element("StackCaching").with_attributes(STACK_CACHING).write_empty().map(drop)
}

/// Writes the providers for handles of GDI and USER, methods of .NET, and heaps (learn, `HeapEventProvider`).
fn selected_providers<W: Write>(
    xml: &mut Writer<W>,
    selection: &ProviderSelection,
) -> io::Result<()> {
    if selection.gdi_user {
        event_provider(xml, &WIN32K, &WIN32K_KEYWORDS)?;
    }
    if selection.dot_net {
        event_provider(xml, &DOT_NET, &DOT_NET_KEYWORDS)?;
    }
    if !selection.heap_pids.is_empty() {
        let provider =
            xml.create_element("HeapEventProvider").with_attribute(("Id", HEAP_PROVIDER));
        provider.write_inner_content(|xml| {
            let mut pids = selection.heap_pids.iter();
            xml.create_element("HeapProcessIds").write_inner_content(|xml| {
                pids.try_for_each(|pid| value(xml, "HeapProcessId", &pid.to_string()))
            })?;
            Ok(())
        })?;
    }
    Ok(())
}

/// Writes a provider of manifest-based events and the lists of its keywords.
fn event_provider<W: Write>(
    xml: &mut Writer<W>,
    attributes: &[(&str, &str)],
    keywords: &[(&str, &str)],
) -> io::Result<()> {
    let provider = xml.create_element("EventProvider").with_attributes(attributes.iter().copied());
    provider
        .write_inner_content(|xml| {
            keywords.iter().try_for_each(|(list, bits)| listed(xml, list, "Keyword", &[bits]))
        })
        .map(drop)
}

fn provider<W: Write>(
    xml: &mut Writer<W>,
    events: Events,
    selection: &ProviderSelection,
) -> io::Result<()> {
    let keywords: Vec<&str> = events.families().map(|family| family.keyword).collect();
    let kernel = events.stacks().filter(|event| *event != OBJECT_DEREFERENCE);
    let heaps = HEAP_STACKS.into_iter().filter(|_| !selection.heap_pids.is_empty());
    let stacks: Vec<&str> = kernel.map(|event| event.name).chain(heaps).collect();
    let provider = xml.create_element("SystemProvider").with_attribute(("Id", PROVIDER));
    provider.write_inner_content(|xml| {
        listed(xml, "Keywords", "Keyword", &keywords)?;
        listed(xml, "Stacks", "Stack", &stacks)
    })?;
    Ok(())
}

fn profiles<W: Write>(xml: &mut Writer<W>, selection: &ProviderSelection) -> io::Result<()> {
    let common = [("Name", PROFILE_NAME), ("Description", DESCRIPTION), ("DetailLevel", "Verbose")];
    let profile = xml.create_element("Profile").with_attribute(("Id", FILE_PROFILE));
    let profile = profile.with_attributes(common).with_attribute(("LoggingMode", "File"));
    profile.write_inner_content(|xml| {
        xml.create_element("Collectors").write_inner_content(|xml| {
            provided(xml, "SystemCollectorId", COLLECTOR, |xml| {
                value(xml, "SystemProviderId", PROVIDER)
            })?;
            let ids: Vec<&str> = selection.event_providers().collect();
            if !ids.is_empty() {
                provided(xml, "EventCollectorId", EVENT_COLLECTOR, |xml| {
                    listed(xml, "EventProviders", "EventProviderId", &ids)
                })?;
            }
            if !selection.heap_pids.is_empty() {
                provided(xml, "HeapEventCollectorId", HEAP_COLLECTOR, |xml| {
                    listed(xml, "HeapEventProviders", "HeapEventProviderId", &[HEAP_PROVIDER])
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

/// Writes a collector of a profile; `write` adds its providers.
fn provided<W: Write>(
    xml: &mut Writer<W>,
    element: &str,
    collector: &str,
    write: impl FnOnce(&mut Writer<W>) -> io::Result<()>,
) -> io::Result<()> {
    let collector = xml.create_element(element).with_attribute(("Value", collector));
    collector.write_inner_content(write).map(drop)
}

/// Writes a list of values.
fn listed<W: Write>(
    xml: &mut Writer<W>,
    list: &str,
    item: &str,
    values: &[&str],
) -> io::Result<()> {
    xml.create_element(list)
        .write_inner_content(|xml| values.iter().try_for_each(|text| value(xml, item, text)))
        .map(drop)
}

fn merge<W: Write>(xml: &mut Writer<W>) -> io::Result<()> {
    xml.create_element("TraceMergeProperties").write_inner_content(|xml| {
        let name = "TraceMerge_handlescope";
        let property = xml.create_element("TraceMergeProperty");
        property.with_attributes([("Id", name), ("Name", name)]).write_inner_content(|xml| {
            value(xml, "DeletePreMergedTraceFiles", "true")?;
            value(xml, "FileCompression", "true")?;
            listed(xml, "CustomEvents", "CustomEvent", &CUSTOM_EVENTS)
        })?;
        Ok(())
    })?;
    Ok(())
}

/// Writes `<Name Value="…"/>`.
fn value<W: Write>(xml: &mut Writer<W>, name: &str, value: &str) -> io::Result<()> {
    xml.create_element(name).with_attribute(("Value", value)).write_empty()?;
    Ok(())
}

#[cfg(test)]
mod tests;
