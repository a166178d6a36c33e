// The search over pages, keys, models and requests: opened by Ctrl+K or ⌘K.
import { Modal, Text, TextInput, UnstyledButton } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { CpuIcon, type Icon, KeyIcon, LogIcon, SearchIcon } from "@primer/octicons-react";
import { useId, useState } from "react";
import { useLocation } from "wouter";
import { useRead } from "../api/queries.ts";
import { useSession } from "../api/session.tsx";
import type { ApiKeyList, ModelList } from "../api/types.ts";
import type { Section } from "./navigation.ts";

interface Found {
  href: string;
  name: string;
  kind: string;
  icon: Icon;
}

/** Maximum number of results of each kind. */
const most = 8;
/** A request id, anywhere in the text. */
const requestId = /req_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/;

/** Focuses the field as soon as it is on the page; the dialog itself would do so one task later. */
const focus = (field: HTMLInputElement | null) => field?.focus();

interface FindProps {
  /**
   * The pages to find. They are passed in: importing the menu's module here would move that module into the start
   * script.
   */
  sections: readonly Section[];
  close(): void;
}

/** Opens and closes without a transition, so that keys typed right after the shortcut reach the search. */
export function Find({ opened, ...search }: FindProps & { opened: boolean }) {
  return (
    <Modal opened={opened} onClose={search.close} title="Find" yOffset="10vh" transitionProps={{ duration: 0 }}>
      <Search {...search} />
    </Modal>
  );
}

function Search({ sections, close }: FindProps) {
  const [, navigate] = useLocation();
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const listId = useId();
  const found = useFound(sections, text.trim());
  const active = Math.min(at, found.length - 1);
  const open = (one: Found | undefined) => {
    if (!one) return;
    close();
    navigate(one.href);
  };
  return (
    <>
      <TextInput
        ref={focus}
        data-autofocus
        aria-label="Find pages, keys, models and requests"
        placeholder="Page, key, model or request id"
        leftSection={<SearchIcon />}
        role="combobox"
        aria-expanded={found.length > 0}
        aria-controls={listId}
        {...(active < 0 ? {} : { "aria-activedescendant": `${listId}-${active}` })}
        value={text}
        onChange={({ currentTarget }) => {
          setText(currentTarget.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
          if (step !== 0) setAt((active + step + found.length) % Math.max(1, found.length));
          else if (event.key === "Enter" && !event.nativeEvent.isComposing) open(found[active]);
          else return;
          event.preventDefault();
        }}
      />
      <div id={listId} role="listbox" aria-label="Results" className="found">
        {found.map((one, index) => (
          <UnstyledButton
            key={one.href}
            id={`${listId}-${index}`}
            role="option"
            aria-selected={index === active}
            tabIndex={-1}
            className="menu-link"
            onClick={() => open(one)}
          >
            <one.icon size={16} />
            <Text span size="sm" truncate>
              {one.name}
            </Text>
            <Text span size="xs" c="dimmed" ml="auto">
              {one.kind}
            </Text>
          </UnstyledButton>
        ))}
      </div>
      {found.length === 0 && (
        <Text size="sm" c="dimmed" p="sm" role="status">
          Nothing found. To find a request, paste its full id (req_…).
        </Text>
      )}
    </>
  );
}

function useFound(sections: readonly Section[], text: string): readonly Found[] {
  const { isManager, isOperator } = useSession();
  const [search] = useDebouncedValue(text, 200);
  const keys = useRead<ApiKeyList>("/v1/keys", { search, limit: most }, { enabled: search.length > 1, keep: true });
  const models = useRead<ModelList>("/v1/models", {}, { enabled: search !== "" });
  const has = (name: string) => name.toLowerCase().includes(text.toLowerCase());
  const pages = sections
    .filter(({ who }) => who === undefined || isOperator)
    .flatMap(({ title, pages: all }) =>
      all
        .filter(({ who, title: name }) => (who === undefined || isManager) && has(name))
        .map(({ path, title: name, icon }) => ({ href: path, name, kind: title ?? "Page", icon })),
    );
  if (text === "") return pages;
  const id = requestId.exec(text)?.[0];
  const found = text.length > 1 ? (keys.data?.data ?? []) : [];
  const named = models.data?.data.filter(({ id: name }) => has(name)) ?? [];
  return [
    ...(id === undefined ? [] : [{ href: `/requests/${id}`, name: id, kind: "Request", icon: LogIcon }]),
    ...pages.slice(0, most),
    ...named.slice(0, most).map(({ id: name }) => ({
      // Only operators can open the view of a single model. For other users, the link filters the list of models.
      href: `/catalog?${isOperator ? "model" : "search"}=${encodeURIComponent(name)}`,
      ...{ name, kind: "Model", icon: CpuIcon },
    })),
    ...found.map(({ id: key, name, last4 }) => ({
      ...{ href: `/settings/api-keys/${key}`, name: `${name} …${last4}`, kind: "Key", icon: KeyIcon },
    })),
  ];
}
