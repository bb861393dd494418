package live

// Hue is a colour on a light and on a dark ground, as "#rrggbb".
type Hue struct{ Light, Dark string }

// Palette are the colours of stages, in the order in which a graph has them: the
// same that the pages of package report give them. It is Paul Tol's muted scheme,
// which readers with any of the common colour deficiencies tell apart.
var Palette = [...]Hue{
	{"#332288", "#8278e0"}, // indigo
	{"#88ccee", "#88ccee"}, // cyan
	{"#44aa99", "#44aa99"}, // teal
	{"#ddcc77", "#ddcc77"}, // sand
	{"#cc6677", "#e07b8c"}, // rose
	{"#117733", "#23894b"}, // green
	{"#aa4499", "#c36bb5"}, // purple
	{"#999933", "#a9a943"}, // olive
	{"#882255", "#b5467a"}, // wine
}

// The colours of what memory and values do, also the report's.
var (
	Held    = Hue{"#4477aa", "#6a9fd4"}
	Queued  = Hue{"#ee8833", "#f09a50"}
	Pending = Hue{"#aa3377", "#d070a8"}
)
