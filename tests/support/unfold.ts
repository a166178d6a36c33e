// Opens the folded sections of the form in a page's dialog.
import type { Page } from "playwright-core";

/** Clicks each section's button; fails where a section is missing or open already. */
export async function unfold(page: Page, ...sections: readonly string[]): Promise<void> {
  for (const name of sections) {
    await page.getByRole("dialog").getByRole("button", { name, exact: true, expanded: false }).click();
  }
}
