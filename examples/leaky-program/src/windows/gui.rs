//! GDI and USER objects. Without a desktop, as under Wine without a display, none are created.

use leaky_program::truth::AllocationKind;
use windows::Win32::Foundation::COLORREF;
use windows::Win32::Graphics::Gdi::{CreatePen, DeleteObject, PS_SOLID};
use windows::Win32::UI::WindowsAndMessaging::{CreateMenu, DestroyMenu};

use super::RoundResult;
use super::truth::Truth;

/// Runs one round; a pen and a menu leak in every second round.
pub fn round(truth: &Truth, round: u32) -> RoundResult {
    create_pens(truth, round.is_multiple_of(2))?;
    create_menus(truth, round.is_multiple_of(2))
}

#[inline(never)]
fn create_pens(truth: &Truth, is_leaked: bool) -> RoundResult {
    // SAFETY: it only takes numbers.
    let pen = unsafe { CreatePen(PS_SOLID, 1, COLORREF(0)) };
    if pen.is_invalid() {
        return Ok(());
    }
    truth.allocated("create_pens", AllocationKind::Gdi, pen.0 as usize, 0)?;
    if !is_leaked {
        // SAFETY: no device context uses the pen.
        let _ = unsafe { DeleteObject(pen.into()) };
        truth.freed("create_pens", AllocationKind::Gdi, pen.0 as usize)?;
    }
    Ok(())
}

#[inline(never)]
fn create_menus(truth: &Truth, is_leaked: bool) -> RoundResult {
    // SAFETY: it takes no arguments.
    let Ok(menu) = (unsafe { CreateMenu() }) else { return Ok(()) };
    truth.allocated("create_menus", AllocationKind::User, menu.0 as usize, 0)?;
    if !is_leaked {
        // SAFETY: no window has the menu.
        unsafe { DestroyMenu(menu) }?;
        truth.freed("create_menus", AllocationKind::User, menu.0 as usize)?;
    }
    Ok(())
}
