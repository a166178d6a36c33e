// A select field whose options are rendered once the field gets the focus or the pointer.
import { Select, type SelectProps } from "@mantine/core";
import { useState } from "react";

/** Mantine would render the options of all select fields with the page, hidden, and measure them. */
export function Choice({ onFocus, ...select }: SelectProps) {
  const [isNear, setNear] = useState(false);
  return (
    <Select
      {...select}
      comboboxProps={{ keepMounted: isNear }}
      onFocus={(event) => {
        setNear(true);
        onFocus?.(event);
      }}
    />
  );
}
