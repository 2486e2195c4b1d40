//! Function names as people write them: demangled, without parameters.
//!
//! A PDB names a function up to twice, in two spellings. The public symbol is what the linker saw
//! (`?Open@Cache@@QEAAXH@Z`, or `_open@4` from 32-bit C). The private symbol is what the compiler saw (`Cache::Open`);
//! `symbolic` adds the parameters (`Cache::Open(int)`). Whichever a PDB holds, a function should have one name in
//! stacks and filters: `Cache::Open`, with templates as DbgHelp spells them (`std::vector<int,std::allocator<int> >`).

mod decorated;
mod spelling;

use symbolic::common::{Arch, CpuFamily, Language, Name, NameMangling};
use symbolic_demangle::{Demangle, DemangleOptions};

/// Returns the displayed form of a name from a symcache.
pub fn readable(name: &str) -> String {
    if let Some(name) = decorated::undecorated(name) {
        return name;
    }
    let demangled = Name::new(name, NameMangling::Unknown, Language::Unknown)
        .demangle(DemangleOptions::name_only());
    match demangled {
        Some(demangled) if demangled != name => demangled,
        _ => spelling::spelled(name),
    }
}

/// Cuts the parameter list, and any qualifiers after it, off the name of a private symbol.
///
/// Brackets within template arguments or scopes (`` `f(int)'::`2'::g ``) stay. So do those of `operator()`, which may
/// appear without parameters if its type is unknown.
pub fn without_parameters(name: &str) -> &str {
    let bare = [" const", " volatile", " &", " &&"]
        .iter()
        .fold(name, |name, qualifier| name.strip_suffix(qualifier).unwrap_or(name));
    if !bare.ends_with(')') || bare.ends_with("operator()") {
        return name;
    }
    let mut depth = 0_usize;
    for (at, byte) in bare.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            let cut = bare.get(..at).unwrap_or(name);
            return if cut.is_empty() { name } else { cut };
        }
    }
    name
}

/// Undoes the C decoration of 32-bit x86, by calling convention: `_cdecl`, `_stdcall@4`, `@fastcall@8`, and
/// `vectorcall@@16` (Microsoft, "Decorated names").
///
/// On other architectures only `vectorcall` decorates; there a leading underscore is part of the name, as in
/// `_beginthreadex`.
pub fn without_decoration(name: &str, arch: Arch) -> &str {
    if name.contains(['?', ':', '(', '<', '`']) {
        return name;
    }
    if let Some((bare, size)) = name.rsplit_once("@@")
        && is_decimal(size)
        && !bare.is_empty()
    {
        return bare;
    }
    if arch.cpu_family() != CpuFamily::Intel32 {
        return name;
    }
    let Some(rest) = name.strip_prefix(['_', '@']).filter(|rest| !rest.is_empty()) else {
        return name;
    };
    match rest.rsplit_once('@') {
        Some((bare, size)) if is_decimal(size) && !bare.is_empty() => bare,
        _ if name.starts_with('_') => rest,
        _ => name,
    }
}

fn is_decimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mangled_cpp_names_become_scope_and_function() {
        let pairs = [
            ("?CreateEventW@EventManager@@QEAAPEAXPEBG@Z", "EventManager::CreateEventW"),
            ("??1EventManager@@QEAA@XZ", "EventManager::~EventManager"),
            ("_ZN5Cache4OpenEi", "Cache::Open"),
            ("??$Find@H@Cache@@QEAAHH@Z", "Cache::Find<int>"),
            ("??RLess@@QEBA_NHH@Z", "Less::operator()"),
            ("??$f@_K@@YAHPEA_K@Z", "f<unsigned __int64>"),
            ("??$f@$$CBH@@YAHPEBH@Z", "f<int const >"),
            ("??$f@PEBUS@ns@@@@YAHPEAPEBUS@ns@@@Z", "f<ns::S const *>"),
            ("??$f@PEQS@@H@@YAHPEAPEQS@@H@Z", "f<int S::*>"),
            ("??$g@P8S@ns@@EAAHH@Z@@YAHP8S@ns@@EAAHH@Z@Z", "g<int (__cdecl ns::S::*)(int)>"),
            ("??$f@$$BY03H@@YAHPEAY03H@Z", "f<int [4]>"),
            ("??BOp@@QEAAHXZ", "Op::operator int"),
            ("??$?BUS@ns@@@Op@@QEAAPEAUS@ns@@XZ", "Op::operator ns::S *<ns::S>"),
        ];
        for (mangled, readable_name) in pairs {
            assert_eq!(readable(mangled), readable_name);
        }
    }

    #[test]
    fn private_and_public_symbols_of_a_function_have_the_same_name() {
        for (private, public, name) in [
            ("f<const int *const *>", "??$f@PEBQEBH@@YAXXZ", "f<int const * const *>"),
            ("f<S *const &>", "??$f@AEBQEAUS@@@@YAXXZ", "f<S * const &>"),
            ("f<int (*const &)(int)>", "??$f@AEBQ6AHH@Z@@YAXXZ", "f<int (__cdecl* const &)(int)>"),
            ("f<int (*&)(int)>", "??$f@AEAP6AHH@Z@@YAXXZ", "f<int (__cdecl* &)(int)>"),
            ("f<void ()>", "??$f@$$A6AXXZ@@YAXXZ", "f<void __cdecl(void)>"),
            ("f<int (char *)>", "??$f@$$A6AHPEAD@Z@@YAXXZ", "f<int __cdecl(char *)>"),
            ("f<int (int) const>", "??$f@$$A8@@EBAHH@Z@@YAXXZ", "f<int __cdecl(int)const >"),
            ("f<int (int) noexcept>", "??$f@$$A6AHH@_E@@YAXXZ", "f<int __cdecl(int) noexcept>"),
            (
                "f<void (int (*)(int))>",
                "??$f@$$A6AXP6AHH@Z@Z@@YAXXZ",
                "f<void __cdecl(int (__cdecl*)(int))>",
            ),
            (
                "f<void (*(*)(int))(char)>",
                "??$f@P6AP6AXD@ZH@Z@@YAXXZ",
                "f<void (__cdecl* (__cdecl*)(int))(char)>",
            ),
            ("f<int (*(*)(int))[4]>", "??$f@P6APEAY03HH@Z@@YAXXZ", "f<int (* (__cdecl*)(int))[4]>"),
            ("f<void (S::*)() &&>", "??$f@P8S@@EHAAXXZ@@YAXXZ", "f<void (__cdecl S::*)(void) &&>"),
            (
                "f<int (S::*)(int) const>",
                "??$f@P8S@@EBAHH@Z@@YAXXZ",
                "f<int (__cdecl S::*)(int)const >",
            ),
            ("f<int[]>", "??$f@$$BY0A@H@@YAXXZ", "f<int []>"),
            ("Box<int>::Box", "??0?$Box@H@@QEAA@XZ", "Box<int>::Box<int>"),
            ("Box<int>::Box<double>", "??$?0N@?$Box@H@@QEAA@N@Z", "Box<int>::Box<int><double>"),
            ("Box<int>::~Box", "??1?$Box@H@@QEAA@XZ", "Box<int>::~Box<int>"),
            (
                "Op::operator const char *<char>",
                "??$?BD@Op@@QEAAPEBDXZ",
                "Op::operator char const *<char>",
            ),
            ("c<')'>", "??$c@$0CJ@@@YAXXZ", "c<41>"),
            (r"c<'\''>", "??$c@$0CH@@@YAXXZ", "c<39>"),
            (r"c<'\x00'>", "??$c@$0A@@@YAXXZ", "c<0>"),
            ("n<18446744073709551615>", "??$n@$0?0@@YAXXZ", "n<-1>"),
            ("n<nullptr>", "??$n@$0A@@@YAXXZ", "n<0>"),
            ("n<&g>", "??$n@$1?g@@3HA@@YAXXZ", "n<&g>"),
        ] {
            assert_eq!(readable(private), name);
            assert_eq!(readable(public), name);
            assert_eq!(readable(name), name);
        }
    }

    #[test]
    fn functions_of_the_compiler_for_variables_are_named() {
        for (mangled, name) in [
            ("??__Ei@@YAXXZ", "`dynamic initializer for 'i''"),
            ("??__Fi@ns@@YAXXZ", "`dynamic atexit destructor for 'ns::i''"),
            ("??__E?i@?$Box@H@@2US@@A@@YAXXZ", "`dynamic initializer for 'Box<int>::i''"),
        ] {
            assert_eq!(readable(mangled), name);
        }
    }

    #[test]
    fn rust_names_of_both_kinds_lose_their_hash() {
        let pairs = [
            ("_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place"),
            ("_RNvNtCs1234_7mycrate5cache4open", "mycrate::cache::open"),
            ("_RINvNtC3std3mem8align_ofdE", "std::mem::align_of::<f64>"),
        ];
        for (mangled, readable_name) in pairs {
            assert_eq!(readable(mangled), readable_name);
        }
    }

    #[test]
    fn names_that_are_not_mangled_stay_as_they_are() {
        let names = [
            "NtCreateEvent",
            "_beginthreadex",
            "?",
            "?broken",
            "??@0123456789abcdef0123456789abcdef@",
            "thread_start<unsigned int (__cdecl*)(void *),1>",
            "`main'::`4'::<lambda_1>::operator()",
            "",
        ];
        for name in names {
            assert_eq!(readable(name), name);
        }
    }

    #[test]
    fn the_parameters_of_a_private_symbol_are_cut_off() {
        let pairs = [
            ("main(int, char**)", "main"),
            ("Cache::Open(void (*)(int), A<int (*)(char)>)", "Cache::Open"),
            ("Cache::Size() const", "Cache::Size"),
            ("Cache::operator()(int)", "Cache::operator()"),
            ("f<void (*)(int)>(int)", "f<void (*)(int)>"),
            ("`f(int)'::`2'::g(int)", "`f(int)'::`2'::g"),
        ];
        for (full, bare) in pairs {
            assert_eq!(without_parameters(full), bare);
        }
    }

    #[test]
    fn a_name_without_parameters_keeps_its_brackets() {
        let names =
            ["main'::<lambda_1>::operator()", "f<int (*)(void *),1>", "(anonymous)", ")(", ")", ""];
        for name in names {
            assert_eq!(without_parameters(name), name);
        }
    }

    #[test]
    fn c_decoration_is_undone_on_32_bit_only() {
        let pairs = [
            ("_main", "main"),
            ("_Sleep@4", "Sleep"),
            ("@fast@8", "fast"),
            ("vector@@16", "vector"),
            ("__beginthreadex", "_beginthreadex"),
            ("?Open@Cache@@QAEXXZ", "?Open@Cache@@QAEXXZ"),
            ("_", "_"),
            ("@", "@"),
            ("@@8", "@@8"),
        ];
        for (decorated, bare) in pairs {
            assert_eq!(without_decoration(decorated, Arch::X86), bare);
        }
        assert_eq!(without_decoration("_beginthreadex", Arch::Amd64), "_beginthreadex");
        assert_eq!(without_decoration("_Sleep@4", Arch::Amd64), "_Sleep@4");
        assert_eq!(without_decoration("vector@@16", Arch::Amd64), "vector");
    }
}
