// A select field whose options are rendered once the field has had the focus.
import { Select, type SelectProps } from "@mantine/core";
import { useState } from "react";

/** Keeps the options unmounted until the first focus: Mantine would render and measure those of all fields at once. */
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
