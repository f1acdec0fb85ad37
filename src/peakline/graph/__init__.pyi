from peakline.graph.scopes.graphs import graph_names as graph_names
