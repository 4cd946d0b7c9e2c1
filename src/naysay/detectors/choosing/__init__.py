"""How `choose_thresholds` finds its two numbers: on a grid, by quantiles, or for each anchor."""
