// The offer of one MCP server: its tools, each with a detail view, its prompts and its resources.
import { Box, Code, Group, Text } from "@mantine/core";
import { type Listed, ownName } from "../../api/tools.ts";
import { NameButton } from "../../parts/page/links.tsx";
import { Section } from "../../parts/page/section.tsx";
import { Some } from "../../parts/page/some.tsx";
import { counted } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import { VisibleText } from "../../parts/words/visible-text.tsx";
import { type OfferOfServer, text } from "./offered.ts";
import { Hints } from "./tool-view.tsx";

interface ServerOfferProps {
  offer: OfferOfServer;
  choose(tool: Listed): void;
}

export function ServerOffer({ offer: { server, tools, prompts, resources }, choose }: ServerOfferProps) {
  const amounts = [
    ...(tools.length > 0 ? [counted(tools.length, "tool")] : []),
    ...(prompts.length > 0 ? [counted(prompts.length, "prompt")] : []),
    ...(resources.length > 0 ? [counted(resources.length, "resource")] : []),
  ];
  return (
    <Section title={server === "" ? "Other tools" : server} about={amounts.join(", ")}>
      {tools.length > 0 && (
        <Some items={tools} label={`Tools of ${server}`} keyOf={keyOf}>
          {(tool) => (
            <>
              <Group gap="xs">
                <Box maw="100%" style={{ overflowWrap: "anywhere" }}>
                  <NameButton show={() => choose(tool)}>{ownName(tool.name)}</NameButton>
                </Box>
                <Hints annotations={tool.annotations} />
              </Group>
              <SmallNote lineClamp={2} style={{ overflowWrap: "anywhere" }} dir="auto">
                <VisibleText>{text(tool.description) || text(tool.title) || "No description"}</VisibleText>
              </SmallNote>
            </>
          )}
        </Some>
      )}
      {prompts.length > 0 && (
        <Named title="Prompts" items={prompts} server={server}>
          {({ name }) => ownName(name)}
        </Named>
      )}
      {resources.length > 0 && (
        <Named title="Resources" items={resources} server={server}>
          {({ uri }) => text(uri).replace(/^headrace\+[a-z0-9-]+:/, "")}
        </Named>
      )}
    </Section>
  );
}

interface NamedProps {
  title: string;
  server: string;
  items: readonly Listed[];
  /** Returns the identifier by which the server knows the item. */
  children(item: Listed): string;
}

function Named({ title, server, items, children }: NamedProps) {
  return (
    <div>
      <Text size="sm" fw={600} mb={4} component="h3">
        {title}
      </Text>
      <Some items={items} label={`${title} of ${server}`} keyOf={keyOf}>
        {(item) => (
          <>
            <Code style={{ overflowWrap: "anywhere" }}>
              <VisibleText>{children(item)}</VisibleText>
            </Code>
            {text(item.description) !== "" && (
              <SmallNote lineClamp={2} style={{ overflowWrap: "anywhere" }} dir="auto">
                <VisibleText>{text(item.description)}</VisibleText>
              </SmallNote>
            )}
          </>
        )}
      </Some>
    </div>
  );
}

/** Returns a React key of name and URI, because several resources may have the same name. */
function keyOf({ name, uri }: Listed): string {
  return `${name} ${text(uri)}`;
}
