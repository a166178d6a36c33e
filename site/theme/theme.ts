// The look of the site: the generator's own theme in the colours of the dashboard, with the version and the ways to the server.
import { type Theme, useData, useRoute } from "vitepress";
import DefaultTheme from "vitepress/theme-without-fonts";
import { defineComponent, h, onMounted } from "vue";
import type { ThemeConfig } from "../config.ts";
import "./theme.css";

/** The version on each page; with several, a choice that stays at the same page where the other has it. */
const VersionChooser = defineComponent(() => {
  const { theme } = useData<ThemeConfig>();
  const route = useRoute();
  return () => {
    const { version, versions } = theme.value;
    if (versions.length < 2) return h("p", { class: "version" }, `Version ${version.name}`);
    const choose = ({ target }: Event) => {
      if (!(target instanceof HTMLSelectElement)) return;
      location.assign(target.value + route.path.slice(version.base.length));
    };
    const choices = versions.map(({ name, base }) =>
      h("option", { value: base, selected: base === version.base }, `Version ${name}`),
    );
    return h("select", { class: "version", "aria-label": "Version of the guides", onChange: choose }, choices);
  };
});

const ways = () => [
  h("a", { class: "way", href: "/docs/api", target: "_self" }, "API reference"),
  h("a", { class: "way", href: "/", target: "_self" }, "Dashboard"),
];

const notFound = (base: string) =>
  h("main", { class: "not-found" }, [
    h("h1", "Page not found"),
    h("p", "There is no such page in this version of the guides. The search may find what it was about."),
    h("a", { href: base }, "Go to the guides"),
  ]);

const Layout = defineComponent(() => {
  const { theme } = useData<ThemeConfig>();
  onMounted(() => {
    // The reference was here once: its links name an endpoint behind the `#`.
    const isHome = location.pathname === theme.value.version.base;
    if (isHome && location.hash !== "" && !document.getElementById(location.hash.slice(1)))
      location.replace(`/docs/api${location.hash}`);
  });
  return () =>
    h(DefaultTheme.Layout, null, {
      "nav-bar-content-after": () => h("div", { class: "ways" }, ways()),
      "nav-screen-content-after": ways,
      "not-found": () => notFound(theme.value.version.base),
      "sidebar-nav-before": () => h(VersionChooser),
    });
});

export const theme: Theme = { extends: DefaultTheme, Layout };
