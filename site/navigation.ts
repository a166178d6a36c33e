// The order of the pages, by who reads them: docs/README.md says it, on a code host as here.
import { posix } from "node:path";

export interface Section {
  title: string;
  entries: readonly {
    title: string /** From the root of the repository; a folder ends in a slash. */;
    source: string;
  }[];
}

/** Sections with their links, in the order of the text. Throws where there are none. */
export function readNavigation(text: string): Section[] {
  const sections = text
    .split(/^## /m)
    .slice(1)
    .map((part) => ({
      title: part.slice(0, part.indexOf("\n")).trim(),
      entries: [...part.matchAll(/^- \[([^\]]+)\]\(([^)\s]+)\)/gm)].map(([, title = "", target = ""]) => ({
        title,
        source: posix.join("docs", target),
      })),
    }))
    .filter(({ entries }) => entries.length > 0);
  if (sections.length === 0)
    throw new Error("docs/README.md lists no page: it needs `## Section` and `- [Title](file.md)`.");
  return sections;
}
