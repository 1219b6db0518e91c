"""Children: one module for each kind of object in a replica, with `render(view)`, which yields the desired objects of that kind."""
