//! Handle values: tag bits, kernel handles and pseudo handles.

/// Bits of a handle value that belong to the caller: `RegCloseKey` sets one of them for keys of `HKEY_CLASSES_ROOT`.
const TAG_BITS: u64 = 3;

/// Bit that marks kernel handles, which are in the handle table of System. Rundowns of older traces leave it out.
const KERNEL_BIT: u64 = 1 << 31;

/// The lowest pseudo handle; for example, -1 means the current process. No pseudo handle is in a handle table.
const FIRST_PSEUDO: u64 = 0xFFFF_FFF0;

/// Returns the entry of the handle table that a value refers to; handles are compared by it. Values of one entry may
/// differ in their tag bits and, in System, in the kernel handle bit.
#[inline]
pub const fn handle_slot(value: u64) -> u64 {
    let value = value & !TAG_BITS;
    if is_kernel_handle(value) { value & (KERNEL_BIT - 1) } else { value }
}

/// Whether a value is a handle in the table of System. Any process may close it, whichever opened it.
#[inline]
pub const fn is_kernel_handle(value: u64) -> bool {
    // 64-bit code sign-extends the value.
    let is_extended = value >> 32 == u32::MAX as u64;
    (value >> 32 == 0 || is_extended) && value & KERNEL_BIT != 0 && !is_pseudo_handle(value)
}

/// Whether a value means the current process, thread or token instead of an entry of a handle table.
#[inline]
const fn is_pseudo_handle(value: u64) -> bool {
    value & 0xFFFF_FFFF >= FIRST_PSEUDO
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_bits_and_the_bit_of_kernel_handles_are_no_part_of_the_slot() {
        assert_eq!([0x1A0, 0x1A1, 0x1A2, 0x1A3].map(handle_slot), [0x1A0; 4]);
        let of_kernel = [0x8000_FD28, 0xFFFF_FFFF_8000_FD28, 0x8000_FD2A, 0xFD28];
        assert_eq!(of_kernel.map(handle_slot), [0xFD28; 4]);
        assert_ne!(handle_slot(0xFFFF_FFFF), handle_slot(0x7FFF_FFFF));
    }

    #[test]
    fn kernel_handles_have_bit_31_and_pseudo_handles_are_none() {
        assert!(is_kernel_handle(0x8000_0004) && is_kernel_handle(0xFFFF_FFFF_8000_0004));
        for value in [4, 0x7FFF_FFFC, 0xFFFF_FFFF, 0xFFFF_FFFE, u64::MAX, 0x1_8000_0004] {
            assert!(!is_kernel_handle(value), "{value:#x}");
        }
        assert!(is_pseudo_handle(0xFFFF_FFFE) && !is_pseudo_handle(0x8000_0004));
    }
}
