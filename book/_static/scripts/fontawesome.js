// Stands in for the theme's file of this name: 1.5 MB of icons as code, for
// those who add icons of their own. The icons of these pages come as a font.
