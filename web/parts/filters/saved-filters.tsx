// Filters of a page under a name: kept in this browser, for one person, account and page.
import { ActionIcon, Group, Menu, Modal, TextInput } from "@mantine/core";
import { BookmarkIcon, TrashIcon } from "@primer/octicons-react";
import { useState } from "react";
import { useLocation, useSearch } from "wouter";
import { useSession } from "../../api/session.tsx";
import { Form } from "../editing/form.tsx";
import { PlainButton } from "../page/buttons.tsx";

/** Maximum number of saved filters of a page. */
const most = 20;

interface Saved {
  name: string;
  /** The query of the page's address. */
  search: string;
}

/** `path` is the path of the list's page, even while one of the list's records is open. */
export function SavedFilters({ path }: { path: string }) {
  const { session } = useSession();
  const [, navigate] = useLocation();
  const search = useSearch();
  const place = `headrace-filters ${path} ${session.person.id} ${session.account.id}`;
  const [saved, setSaved] = useState(() => savedAt(place));
  const [isNaming, setNaming] = useState(false);
  const keep = (next: readonly Saved[]) => {
    localStorage.setItem(place, JSON.stringify(next));
    setSaved(next);
  };
  return (
    <>
      <Menu position="bottom-end" width={260}>
        <Menu.Target>
          <PlainButton leftSection={<BookmarkIcon />}>Saved filters</PlainButton>
        </Menu.Target>
        <Menu.Dropdown>
          {saved.map((one) => (
            <Menu.Item key={one.name} onClick={() => navigate(one.search === "" ? path : `${path}?${one.search}`)}>
              {one.name}
            </Menu.Item>
          ))}
          {saved.length > 0 && <Menu.Divider />}
          <Menu.Item disabled={search === "" && saved.length === 0} onClick={() => setNaming(true)}>
            Save or remove filters
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <Modal opened={isNaming} onClose={() => setNaming(false)} title="Saved filters">
        <Naming saved={saved} search={search} keep={keep} close={() => setNaming(false)} />
      </Modal>
    </>
  );
}

interface NamingProps {
  saved: readonly Saved[];
  search: string;
  keep(saved: readonly Saved[]): void;
  close(): void;
}

function Naming({ saved, search, keep, close }: NamingProps) {
  const [name, setName] = useState("");
  const isFull = saved.length >= most && !saved.some((one) => one.name === name.trim());
  return (
    <Form
      sending={{ isPending: false, error: null }}
      action="Save"
      disabled={name.trim() === "" || isFull}
      submit={() => {
        keep([...saved.filter((one) => one.name !== name.trim()), { name: name.trim(), search }]);
        close();
      }}
      cancel={close}
    >
      <TextInput
        label="Name"
        description="The filters are kept in this browser. A filter of the same name is replaced."
        error={isFull && `You can save at most ${most} filters. Remove one first.`}
        value={name}
        onChange={({ currentTarget }) => setName(currentTarget.value)}
        maxLength={60}
        data-autofocus
      />
      {saved.map((one) => (
        <Group key={one.name} justify="space-between" wrap="nowrap">
          {one.name}
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={`Remove ${one.name}`}
            onClick={() => keep(saved.filter(({ name: other }) => other !== one.name))}
          >
            <TrashIcon />
          </ActionIcon>
        </Group>
      ))}
    </Form>
  );
}

function savedAt(place: string): readonly Saved[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(place) ?? "[]");
    return Array.isArray(kept) ? kept.filter(isSaved).slice(0, most) : [];
  } catch {
    return [];
  }
}

function isSaved(value: unknown): value is Saved {
  return typeof value === "object" && value !== null && "name" in value && "search" in value;
}
