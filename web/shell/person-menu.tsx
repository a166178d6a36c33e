// The user menu: the person and account, the color scheme, and the sign-out.
import { Avatar, Group, Menu, Text, UnstyledButton, useMantineColorScheme, VisuallyHidden } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { CheckIcon, DeviceDesktopIcon, MoonIcon, SignOutIcon, SunIcon } from "@primer/octicons-react";
import { useState } from "react";
import { Link } from "wouter";
import { useSession } from "../api/session.tsx";
import { forgetTab } from "../api/tab-storage.ts";

const schemes = [
  { value: "light", label: "Light", icon: SunIcon },
  { value: "dark", label: "Dark", icon: MoonIcon },
  { value: "auto", label: "Same as the device", icon: DeviceDesktopIcon },
] as const;

export function PersonMenu() {
  const { session, chooseAccount } = useSession();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const [leaving, setLeaving] = useState(false);
  const { person, account, accounts } = session;
  const choose = (id: string) =>
    chooseAccount(id).catch((error: unknown) => {
      notifications.show({
        title: "The account was not switched",
        message: error instanceof Error ? error.message : String(error),
        color: "red",
      });
    });
  return (
    <Menu position="bottom-end" width={260}>
      <Menu.Target>
        <UnstyledButton>
          <Group gap="xs" wrap="nowrap">
            <Avatar name={person.name} color="water" size={32} aria-hidden />
            <Text size="sm" visibleFrom="sm" maw={180} truncate>
              {account.name}
            </Text>
            <VisuallyHidden>{person.name}, menu</VisuallyHidden>
          </Group>
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          <Text size="sm" fw={600} c="var(--mantine-color-text)">
            {person.name}
          </Text>
          <Text size="xs">{person.email}</Text>
        </Menu.Label>
        <Menu.Item component={Link} href="/settings/security">
          Profile and sign-in
        </Menu.Item>
        <Menu.Divider />
        <Menu.Label>Account</Menu.Label>
        {accounts.map(({ id, name, status }) => (
          <Menu.Item
            key={id}
            disabled={status !== "active"}
            onClick={() => id !== account.id && void choose(id)}
            rightSection={id === account.id ? <CheckIcon aria-label="chosen" /> : null}
          >
            {name}
          </Menu.Item>
        ))}
        <Menu.Divider />
        <Menu.Label>Colours</Menu.Label>
        {schemes.map(({ value, label, icon: Icon }) => (
          <Menu.Item
            key={value}
            leftSection={<Icon />}
            onClick={() => setColorScheme(value)}
            rightSection={colorScheme === value ? <CheckIcon aria-label="chosen" /> : null}
          >
            {label}
          </Menu.Item>
        ))}
        <Menu.Divider />
        <Menu.Item
          leftSection={<SignOutIcon />}
          disabled={leaving}
          onClick={() => {
            setLeaving(true);
            signOut(session.csrf_token ?? "");
          }}
        >
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

/**
 * Submits the sign-out form of the server-rendered pages. The answer clears the cookie and redirects to the sign-in
 * page.
 */
function signOut(csrfToken: string): void {
  forgetTab();
  const form = document.createElement("form");
  form.method = "post";
  form.action = "/sign-out";
  const field = document.createElement("input");
  field.type = "hidden";
  field.name = "csrf";
  field.value = csrfToken;
  form.append(field);
  document.body.append(form);
  form.submit();
}
