export interface TestNeeds {
  /** Where each executable is, as names on the PATH or patterns of paths, to its Debian package. */
  debian: Record<string, string>;
  dashboard: boolean;
  guides: boolean;
  programs: boolean;
  deployTools: boolean;
  smallDebians: boolean;
  npms: boolean;
}

export function needsOf(paths: readonly string[], options?: { long?: boolean }): TestNeeds;
