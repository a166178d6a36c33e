// A list of passkeys or sessions: each item has an icon, a description and actions.
import { Divider, Stack, Text } from "@mantine/core";
import { Fragment, type ReactNode } from "react";

interface LinesProps<Item> {
  items: readonly Item[];
  /** Renders one item, without its list element. */
  children(item: Item): ReactNode;
}

export function Lines<Item extends { id: string }>({ items, children }: LinesProps<Item>) {
  return (
    <Stack component="ul" gap="sm" m={0} p={0} style={{ listStyle: "none" }}>
      {items.map((item, index) => (
        <Fragment key={item.id}>
          {index > 0 && <Divider component="li" aria-hidden />}
          <li>{children(item)}</li>
        </Fragment>
      ))}
    </Stack>
  );
}

interface PicturedProps {
  icon: ReactNode;
  children: ReactNode;
}

export function Pictured({ icon, children }: PicturedProps) {
  return (
    <>
      <Text c="dimmed" component="span" aria-hidden>
        {icon}
      </Text>
      <div>{children}</div>
    </>
  );
}
