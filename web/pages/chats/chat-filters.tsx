// The fields above the list of stored chats.
import { Paper, Select, SimpleGrid, TagsInput, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { SearchIcon } from "@primer/octicons-react";
import { useState } from "react";
import { useRead } from "../../api/queries.ts";
import type { ModelList } from "../../api/types.ts";
import { type ChatFilter, isLabel, labelsOf, mostSearched } from "./chat-filter.ts";

interface ChatFiltersProps {
  filter: ChatFilter;
  change(changes: Partial<ChatFilter>): void;
}

export function ChatFilters({ filter, change }: ChatFiltersProps) {
  const { search, model, labels } = filter;
  const models = useRead<ModelList>("/v1/models");
  const modelIds = new Set([...(model ? [model] : []), ...(models.data?.data.map(({ id }) => id) ?? [])]);
  return (
    <Paper withBorder p="sm" component="section" aria-label="Filters">
      <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="sm" verticalSpacing="xs">
        <Search key={search} value={search} change={(text) => change({ search: text })} />
        <Select
          label="Model"
          {...{ size: "xs", placeholder: "All", clearable: true, searchable: true, limit: 100 }}
          value={model || null}
          data={[...modelIds]}
          onChange={(chosen) => change({ model: chosen ?? "" })}
          clearButtonProps={{ "aria-label": "All models" }}
          nothingFoundMessage="No such model"
        />
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

function Search({ value, change }: { value: string; change(text: string): void }) {
  const [text, setText] = useState(value);
  const tell = useDebouncedCallback((wanted: string) => change(wanted), { delay: 400, flushOnUnmount: false });
  return (
    <TextInput
      label="Search"
      type="search"
      size="xs"
      placeholder="In messages and answers"
      leftSection={<SearchIcon size={14} />}
      value={text}
      maxLength={mostSearched}
      onChange={({ currentTarget: { value: typed } }) => {
        setText(typed);
        tell(typed.trim());
      }}
    />
  );
}
