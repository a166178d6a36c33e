// Opens a request by its pasted id.
import { ActionIcon, TextInput } from "@mantine/core";
import { SearchIcon } from "@primer/octicons-react";
import { type FormEvent, useState } from "react";
import { useLocation, useSearch } from "wouter";

/** A request id, anywhere in a header, a log line, or alone. */
const idPattern = /req_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/;

export function RequestSearch() {
  const [, navigate] = useLocation();
  const search = useSearch();
  const [text, setText] = useState("");
  const [isWrong, setWrong] = useState(false);
  /** Opens the request and reports whether the text held an id. */
  const open = (given: string): boolean => {
    const id = idPattern.exec(given)?.[0];
    if (id !== undefined) navigate(`/requests/${id}${search === "" ? "" : `?${search}`}`);
    return id !== undefined;
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setWrong(text.trim() !== "" && !open(text));
  };
  return (
    <form onSubmit={submit}>
      <TextInput
        size="xs"
        w={{ base: "100%", xs: "19rem" }}
        aria-label="Open a request by its id"
        placeholder="Paste a request id: req_…"
        value={text}
        error={
          isWrong &&
          "This is not a request id. A request id starts with req_, followed by 36 characters. You find it in the header x-request-id."
        }
        onChange={({ currentTarget }) => {
          setText(currentTarget.value);
          setWrong(false);
        }}
        onPaste={({ clipboardData }) => {
          if (open(clipboardData.getData("text"))) setWrong(false);
        }}
        rightSection={
          <ActionIcon type="submit" variant="subtle" color="gray" aria-label="Open the request">
            <SearchIcon />
          </ActionIcon>
        }
      />
    </form>
  );
}
