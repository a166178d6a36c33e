// How the generator makes the site: its addresses, its menu, its search, and how Markdown is read.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type DefaultTheme, defineConfigWithTheme, type UserConfig } from "vitepress";
import { codeStyles, colorsByClass } from "./code-colors.ts";
import { type LinkOptions, rewriteLinks } from "./links.ts";
import type { Section } from "./navigation.ts";
import { pathOfSource } from "./pages.ts";
import { mendTables } from "./tables.ts";

export interface Version {
  /** What people call it: `0.1.0`. */
  name: string;
  /** Its address: `/docs/` or `/docs/v0.1/`. */
  base: string;
}

export interface VersionOptions extends LinkOptions {
  version: Version;
  /** All that there are, this one among them. */
  versions: readonly Version[];
  navigation: readonly Section[];
  out: string;
}

/** The anchors that GitHub makes, so that a link to a heading works in both places. */
const slugify = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-");

/** What the pages are told beside what the generator's own theme wants. */
export interface ThemeConfig extends DefaultTheme.Config {
  version: Version;
  versions: readonly Version[];
}

export function siteConfig(options: VersionOptions): UserConfig<ThemeConfig> {
  return defineConfigWithTheme<ThemeConfig>({
    base: options.version.base,
    outDir: options.out,
    lang: "en",
    title: "Headrace",
    titleTemplate: ":title · Headrace",
    cleanUrls: true,
    // It would be turned off by a style element, which the policy of pages refuses.
    appearance: { disableTransition: false },
    // A page asks for what is read, not for what might be.
    router: { prefetchLinks: false },
    head: [
      ["link", { rel: "icon", href: "/assets/logo.svg", type: "image/svg+xml" }],
      ["link", { rel: "stylesheet", href: `${options.version.base}code.css` }],
    ],
    markdown: {
      anchor: { slugify },
      // Those with the least contrast that everybody can read.
      theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
      codeTransformers: [colorsByClass],
      config(markdown) {
        rewriteLinks(markdown, options);
        mendTables(markdown);
      },
    },
    vite: { logLevel: "warn", build: { chunkSizeWarningLimit: 5_000 } },
    themeConfig: {
      logo: { src: "/logo.svg", alt: "" },
      search: {
        provider: "local",
        // All of the words, nearly as they were typed; a heading comes before a long text that has them all somewhere.
        options: {
          miniSearch: {
            searchOptions: { combineWith: "AND", fuzzy: 0.1, boost: { title: 10, titles: 2, text: 1 } },
          },
        },
      },
      outline: [2, 3],
      sidebar: options.navigation.map(({ title, entries }) => ({
        text: title,
        items: entries.map(({ title: text, source }) => ({
          text,
          link: `/${(pathOfSource(source) ?? "").replace(/(?:index)?\.md$/, "")}`,
        })),
      })),
      version: options.version,
      versions: options.versions,
    },
    // The policy of pages takes no inline style; theme.css has the one that matters.
    transformHtml: (html) => html.replaceAll(/ style="(?:position:relative;|--vp-vh:0px;)"/g, ""),
    buildEnd: ({ outDir }) => writeFileSync(join(outDir, "code.css"), codeStyles()),
  });
}
