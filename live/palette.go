package live

// Hue is the colour of a stage on a light and on a dark ground, as "#rrggbb".
type Hue struct{ Light, Dark string }

// Palette are the colours of stages, in the order in which a graph has them:
// neighbours differ in hue and in lightness, so that they are told apart without
// colour vision too.
var Palette = [...]Hue{
	{"#3b6fd4", "#6f9bf5"}, // blue
	{"#e08a1e", "#f0a94a"}, // orange
	{"#1f9e89", "#3cc4ac"}, // teal
	{"#c2406b", "#ec6f96"}, // rose
	{"#7a55c7", "#a98bf0"}, // violet
	{"#6b9a23", "#97c64a"}, // green
	{"#2f8fc0", "#5cb8e6"}, // sky
	{"#a0562c", "#cf8458"}, // brown
	{"#8a6d9e", "#b59bc9"}, // mauve
	{"#b3a11b", "#d9c845"}, // mustard
}
