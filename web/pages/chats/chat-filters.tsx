// The fields above the list of stored chats.
import { Paper, SimpleGrid, TagsInput } from "@mantine/core";
import { SearchIcon } from "@primer/octicons-react";
import { ModelFilter } from "../../parts/filters/model-filter.tsx";
import { SearchField } from "../../parts/filters/search-field.tsx";
import { type ChatFilter, isLabel, labelsOf, maxSearched } from "./chat-filter.ts";

export function ChatFilters({ filter, change }: { filter: ChatFilter; change(changes: Partial<ChatFilter>): void }) {
  const { search, model, labels } = filter;
  return (
    <Paper withBorder p="sm" component="section" aria-label="Filters">
      <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="sm" verticalSpacing="xs">
        <SearchField
          label="Search"
          size="xs"
          placeholder="In messages and answers"
          leftSection={<SearchIcon size={14} />}
          value={search}
          maxLength={maxSearched}
          change={(text) => change({ search: text })}
        />
        <ModelFilter value={model} choose={(chosen) => change({ model: chosen })} />
        <TagsInput
          label="Labels"
          size="xs"
          placeholder={labels === "" ? "name=value, then Enter" : ""}
          value={labelsOf(labels)}
          onChange={(tags) => change({ labels: tags.filter(isLabel).join("\n") })}
          acceptValueOnBlur
        />
      </SimpleGrid>
    </Paper>
  );
}
