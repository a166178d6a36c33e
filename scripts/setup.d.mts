// The types of what tests use of setup.mjs.

/** Builds the dashboard where its sources have changed; installs nothing. Where that fails it is told on standard error. */
export function ensureDashboard(): void;

/** Builds the guides as a site, in the same way; gives whether they are there. */
export function ensureGuides(): boolean;
