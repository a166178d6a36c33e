// What stands around every page: the menu, the account and environment, and whoever is signed in.
import { AppShell, Burger, Button, Group, NavLink, ScrollArea, Text } from "@mantine/core";
import { useDisclosure, useMediaQuery } from "@mantine/hooks";
import { useEffect } from "react";
import { Link, Route, Switch, useLocation } from "wouter";
import { useSession } from "../api/session.tsx";
import { Announcer } from "../parts/announce.tsx";
import { Crash } from "../parts/crash.tsx";
import { Empty } from "../parts/empty.tsx";
import { Page } from "../parts/page.tsx";
import { Connection } from "./connection.tsx";
import { EnvironmentMenu } from "./environment-menu.tsx";
import { LaterPage } from "./later-page.tsx";
import { type Place, sections } from "./navigation.ts";
import { usePageChange } from "./page-change.ts";
import { PersonMenu } from "./person-menu.tsx";

export function Shell() {
  const [opened, { toggle, close }] = useDisclosure();
  const [location] = useLocation();
  const isNarrow = useMediaQuery("(max-width: 61.99em)", undefined, { getInitialValueInEffect: false });
  // biome-ignore lint/correctness/useExhaustiveDependencies: a page that was chosen shows itself, not the menu
  useEffect(close, [location]);
  usePageChange(location);
  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 230, breakpoint: "md", collapsed: { mobile: !opened } }}
      padding={{ base: "md", md: "xl" }}
    >
      <a className="skip" href="#content">
        Skip to the content
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
            <EnvironmentMenu />
            <PersonMenu />
          </Group>
        </Group>
      </AppShell.Header>
      {/* Out of sight it is out of the keyboard's way, too. */}
      <AppShell.Navbar p="xs" aria-label="Pages" inert={isNarrow && !opened}>
        <AppShell.Section grow component={ScrollArea} scrollbarSize={6}>
          <Menu location={location} chosen={close} />
        </AppShell.Section>
        <AppShell.Section>
          <NavLink href="/docs" label="API reference" component="a" />
        </AppShell.Section>
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        <Connection />
        <Pages location={location} />
      </AppShell.Main>
      <Announcer />
    </AppShell>
  );
}

/** `chosen`: also the page that is open already. */
function Menu({ location, chosen }: { location: string; chosen(): void }) {
  const { isManager, isOperator } = useSession();
  const isShown = ({ who }: Place) => who === undefined || (who === "manager" ? isManager : isOperator);
  return sections
    .filter(({ places }) => places.some(isShown))
    .map(({ title, places }) => (
      <nav key={title ?? ""} aria-label={title ?? "Main"}>
        {title && (
          <Text size="xs" c="dimmed" fw={600} mt="sm" mb={2} px="sm" component="h2">
            {title}
          </Text>
        )}
        {places.filter(isShown).map((place) => {
          const active = isAt(place, location);
          const Icon = place.icon;
          // Fetched as one points at it, so that it is there when one opens it.
          const { page } = place;
          const fetchAhead = () => (typeof page === "function" ? undefined : page.load().catch(() => {}));
          return (
            <NavLink
              key={place.path}
              component={Link}
              href={place.path}
              label={place.title}
              leftSection={<Icon size={16} />}
              py={5}
              className="menu-link"
              onPointerEnter={fetchAhead}
              onFocus={fetchAhead}
              onClick={chosen}
              active={active}
              {...(active ? { "aria-current": "page" as const } : {})}
            />
          );
        })}
      </nav>
    ));
}

function isAt({ path }: Place, location: string): boolean {
  return path === "/" ? location === "/" : location === path || location.startsWith(`${path}/`);
}

/** What begins anew with each of its values. */
function frameOf(location: string): string {
  const kept = sections.flatMap(({ places }) => places).find((place) => place.keepsList && isAt(place, location));
  return kept?.path ?? location;
}

function Pages({ location }: { location: string }) {
  return (
    <Crash key={frameOf(location)}>
      <Switch>
        {sections.flatMap(({ places }) =>
          places.map(({ path, page: Opened }) => (
            <Route key={path} path={path === "/" ? path : `${path}/*?`}>
              {typeof Opened === "function" ? <Opened /> : <LaterPage load={Opened.load} />}
            </Route>
          )),
        )}
        <Route>
          <Page title="No such page">
            <Empty
              title="There is no page here"
              action={
                <Button component={Link} href="/">
                  To the overview
                </Button>
              }
            >
              It may have moved, or the address is incomplete.
            </Empty>
          </Page>
        </Route>
      </Switch>
    </Crash>
  );
}
