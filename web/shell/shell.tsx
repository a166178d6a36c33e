// The frame of every page: the menu, the account, the environment and the user.
import { AppShell, Badge, Burger, Group, Text, VisuallyHidden } from "@mantine/core";
import { useDisclosure, useMediaQuery } from "@mantine/hooks";
import { useDeferredValue, useEffect } from "react";
import { Link, Route, Switch, useLocation } from "wouter";
import { useSession } from "../api/session.tsx";
import { Announcer } from "../parts/page/announce.tsx";
import { Crash } from "../parts/page/crash.tsx";
import { Empty } from "../parts/page/empty.tsx";
import { Hints } from "../parts/page/hints.tsx";
import { LinkButton } from "../parts/page/links.tsx";
import { Page } from "../parts/page/page.tsx";
import { Connection } from "./connection.tsx";
import { EnvironmentMenu } from "./environment-menu.tsx";
import { FindButton } from "./find-button.tsx";
import { LaterPage } from "./later-page.tsx";
import { type MenuBadge, useMenuBadges } from "./menu-badges.ts";
import { isAt, type PageEntry, sections } from "./navigation.ts";
import { usePageChange } from "./page-change.ts";
import { PersonMenu } from "./person-menu.tsx";

export function Shell() {
  const [opened, { toggle, close }] = useDisclosure();
  const [location] = useLocation();
  // The frame renders first and the page in a second step, so that neither blocks the browser for long.
  const isFramed = useDeferredValue(true, false);
  const isNarrow = useMediaQuery("(max-width: 61.99em)", undefined, { getInitialValueInEffect: false });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the menu closes whenever another page is opened
  useEffect(close, [location]);
  usePageChange(location);
  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 230, breakpoint: "md", collapsed: { mobile: !opened } }}
      padding={{ base: "md", md: "xl" }}
    >
      <a className="skip" href="#content">
        Skip to content
      </a>
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger
              opened={opened}
              onClick={toggle}
              hiddenFrom="md"
              size="sm"
              aria-label="Menu"
              aria-expanded={opened}
            />
            <Link href="/" className="brand" aria-label="Headrace, overview">
              <img src="/assets/logo.svg" alt="" width="26" height="26" />
              <Text fw={700} component="span" visibleFrom="xs">
                Headrace
              </Text>
            </Link>
          </Group>
          <Group gap="xs" wrap="nowrap">
            <FindButton />
            <EnvironmentMenu />
            <PersonMenu />
          </Group>
        </Group>
      </AppShell.Header>
      {/* A hidden menu must not receive the keyboard focus. */}
      <AppShell.Navbar p="xs" aria-label="Pages" inert={isNarrow && !opened}>
        <AppShell.Section grow className="menu">
          <Menu location={location} chosen={close} />
        </AppShell.Section>
        <AppShell.Section className="menu-end">
          <a className="menu-link" href="/docs">
            Guides
          </a>
          <a className="menu-link" href="/docs/api">
            API reference
          </a>
        </AppShell.Section>
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        <Connection />
        {isFramed && <Pages location={location} />}
      </AppShell.Main>
      <Announcer />
      <Hints />
    </AppShell>
  );
}

/** `chosen` is also called for the page that is already open. */
function Menu({ location, chosen }: { location: string; chosen(): void }) {
  const { isManager, isOperator } = useSession();
  const badges = useMenuBadges(isOperator);
  const isShown = ({ who }: PageEntry) => who !== "manager" || isManager;
  return sections
    .filter(({ who }) => who === undefined || isOperator)
    .map(({ title, pages }) => (
      <nav key={title ?? ""} aria-label={title ?? "Main"}>
        {title && (
          <Text size="xs" c="dimmed" fw={600} mt="sm" mb={2} px="sm" component="h2">
            {title}
          </Text>
        )}
        {pages.filter(isShown).map((page) => {
          const active = isAt(page, location);
          const Icon = page.icon;
          // The page's file is loaded when the link gets the pointer or the focus, so that it is there on a click.
          const fetchAhead = () => page.load().catch(() => {});
          return (
            <Link
              key={page.path}
              href={page.path}
              className="menu-link"
              onPointerEnter={fetchAhead}
              onFocus={fetchAhead}
              onClick={chosen}
              aria-current={active ? "page" : undefined}
            >
              <Icon size={16} />
              {page.title}
              <CountBadge badge={badges.get(page.path)} />
            </Link>
          );
        })}
      </nav>
    ));
}

/** Shows how many things on a page need an operator. */
function CountBadge({ badge }: { badge: MenuBadge | undefined }) {
  if (!badge || badge.count === 0) return null;
  const { count, what } = badge;
  return (
    <Badge color={what === "failing" ? "red" : "yellow"} variant="light" size="sm" ml="auto" tt="none">
      {count > 99 ? "99+" : count}
      <VisuallyHidden> {what}</VisuallyHidden>
    </Badge>
  );
}

/** Returns the React key of the page: the page is mounted anew whenever the key changes. */
function frameOf(location: string): string {
  const kept = sections.flatMap(({ pages }) => pages).find((page) => page.keepsList && isAt(page, location));
  return kept?.path ?? location;
}

function Pages({ location }: { location: string }) {
  return (
    <Crash key={frameOf(location)}>
      <Switch>
        {sections.flatMap(({ pages }) =>
          pages.map(({ path, load }) => (
            <Route key={path} path={path === "/" ? path : `${path}/*?`}>
              <LaterPage load={load} />
            </Route>
          )),
        )}
        <Route>
          <Page title="Page not found">
            <Empty title="Page not found" action={<LinkButton href="/">Go to Overview</LinkButton>}>
              The page may have moved, or its address is incomplete.
            </Empty>
          </Page>
        </Route>
      </Switch>
    </Crash>
  );
}
