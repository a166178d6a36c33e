// The labels of a chat in a list, each of which leads to the chats that have it as well.
import { Anchor, Group } from "@mantine/core";
import { Link } from "wouter";

/** More would not be seen in a row. */
const maxShown = 3;

export function ChatLabels({ metadata }: { metadata: Readonly<Record<string, string>> }) {
  return (
    <Group gap={10} wrap="nowrap" style={{ overflow: "hidden" }}>
      {Object.entries(metadata)
        .slice(0, maxShown)
        .map(([name, value]) => (
          <Anchor
            key={name}
            component={Link}
            href={`/chats?${new URLSearchParams({ labels: `${name}=${value}` })}`}
            {...{ size: "xs", lh: "24px", miw: 24, truncate: true }}
            title={`Only chats with ${name}=${value}`}
          >
            {name}={value}
          </Anchor>
        ))}
    </Group>
  );
}
