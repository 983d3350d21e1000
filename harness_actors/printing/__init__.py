"""What people are shown: texts of models, tools, files and journals, none of which is trusted."""
